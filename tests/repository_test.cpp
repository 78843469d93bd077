// The shape of the repository: small files with telling names, headers that open with their story, and no
// trace of the machine that something was written on.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/source_tree.h"

namespace slipway {
namespace {

constexpr std::size_t most_lines = 300;

bool is_code(const std::string& path) {
  static const std::set<std::string> extensions = {".h", ".cpp", ".cu", ".py", ".sh", ".cmake", ".in"};
  return extensions.contains(std::filesystem::path(path).extension()) || path.ends_with("CMakeLists.txt");
}

TEST(Repository, NoCodeFileIsLongerThanThreeHundredLines) {
  for (const SourceFile& file : source_tree()) {
    if (!is_code(file.path)) continue;
    EXPECT_LE(file.lines.size(), most_lines)
        << file.path << " has " << file.lines.size() << " lines: cut it";
  }
}

TEST(Repository, NoFileIsNamedUtilsHelpersOrManager) {
  const std::regex vague("(^|[/_.-])(utils?|helpers?|managers?|misc|common)([/_.-]|$)");
  for (const SourceFile& file : source_tree()) {
    EXPECT_FALSE(std::regex_search(file.path, vague))
        << file.path << " is cut wrongly: name what it is for";
  }
}

TEST(Repository, EveryHeaderOpensWithItsStory) {
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".h")) continue;
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_TRUE(file.lines.front().starts_with("// ")) << file.path << " must say first what it is for";
  }
}

// Two types of one name in one program are one to the linker: a vector of the one would grow by the code of the other's.
TEST(Repository, NoTwoTypesThatOtherFilesCanSeeHaveOneName) {
  const std::regex defined("(?:struct|class|enum class) (\\w+)(?: final)?(?: : [^{;]*)? ?\\{.*");
  std::map<std::string, std::string> where;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".h") && !file.path.ends_with(".cpp")) continue;
    bool hidden = false;
    for (const std::string& line : file.lines) {
      if (line == "namespace {") hidden = true;
      if (line == "}  // namespace") hidden = false;
      std::smatch match;
      if (hidden || !std::regex_match(line, match, defined)) continue;
      const auto [first, is_new] = where.emplace(match[1], file.path);
      EXPECT_TRUE(is_new) << match[1] << " is defined in " << first->second << " and in " << file.path << ": rename one";
    }
  }
  EXPECT_GT(where.size(), 300U) << "the test no longer finds the types";
}

// By its exact path; "tests/execute_*_test.cpp" names several.
TEST(Repository, EveryTestThatGuardsAHeaderIsThere) {
  const std::regex named("tests/[a-z0-9_]+_test\\.cpp");
  std::set<std::string> tests;
  for (const SourceFile& file : source_tree()) tests.insert(file.path);
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".h")) continue;
    for (const std::string& line : file.lines)
      for (std::sregex_iterator at(line.begin(), line.end(), named), none; at != none; ++at)
        EXPECT_TRUE(tests.contains(at->str())) << file.path << " names " << at->str() << ", which is not there";
  }
}

TEST(Repository, NoFileNamesAnAbsolutePathOfADevelopersMachine) {
  // In pieces, or this file would name them.
  const std::vector<std::string> foreign = {
      std::string(" /wo") + "rk/",   std::string("\"/wo") + "rk/",  std::string("(/wo") + "rk/",
      std::string("=/wo") + "rk/",   std::string("../sha") + "red", std::string("torch") + "env",
      std::string("DESI") + "GN", std::string("PAP") + "ERS", std::string("/tmp/br") + "ief",
      std::string("/ho") + "me/",    std::string("/ro") + "ot/"};
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& name : foreign) {
        EXPECT_EQ((" " + file.lines[i]).find(name), std::string::npos)
            << file.path << ":" << i + 1 << " names " << name << ", which is nowhere but on one machine";
      }
    }
  }
}

TEST(Repository, NoDocumentHoldsAPlaceholder) {
  const std::regex placeholder("@[A-Z]+@");
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".md")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], placeholder))
          << file.path << ":" << i + 1 << ": " << file.lines[i] << " was to be replaced";
    }
  }
}

// Anything with a port or a dotted quad but the loopback address; licences and docs link to pages by https.
TEST(Repository, NoBuildOrSetupFileNamesAPackageServer) {
  const std::regex server(
      "https?://|\\b(?!127\\.0\\.0\\.1|0\\.0\\.0\\.0)[0-9]{1,3}(\\.[0-9]{1,3}){3}\\b|index-url");
  for (const SourceFile& file : source_tree()) {
    const bool build = top_folder(file.path) == "setup" || file.path.ends_with("CMakeLists.txt") ||
                       file.path.ends_with(".cmake") || file.path == "Makefile" || file.path == ".ci/run";
    if (!build) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], server))
          << file.path << ":" << i + 1 << ": package clients know their servers themselves";
    }
  }
}

}  // namespace
}  // namespace slipway
