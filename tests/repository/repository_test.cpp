// The form of the repository: descriptive file names, headers that begin with a comment, and no trace of the machine on
// which something was written.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

TEST(Repository, NoFileIsNamedUtilsHelpersOrManager) {
  const std::regex vague("(^|[/_.-])(utils?|helpers?|managers?|misc|common)([/_.-]|$)");
  for (const SourceFile& file : source_tree()) {
    EXPECT_FALSE(std::regex_search(file.path, vague)) << file.path << " is cut wrongly: name what it is for";
  }
}

TEST(Repository, EveryHeaderOpensWithItsStory) {
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".h")) continue;
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_TRUE(file.lines.front().starts_with("// ")) << file.path << " must say first what it is for";
  }
}

// A file by its exact path; "tests/exec/execute_*_test.cpp" names several.
TEST(Repository, EveryTestThatGuardsAHeaderIsThere) {
  const std::regex named("tests/[a-z0-9_/]+_test\\.cpp");
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
  // Split, so that this file does not contain them.
  const std::vector<std::string> foreign = {
      std::string(" /wo") + "rk/", std::string("\"/wo") + "rk/",  std::string("(/wo") + "rk/",
      std::string("=/wo") + "rk/", std::string("../sha") + "red", std::string("torch") + "env",
      std::string("DESI") + "GN",  std::string("PAP") + "ERS",    std::string("/tmp/br") + "ief",
      std::string("/ho") + "me/",  std::string("/ro") + "ot/"};
  for (const SourceFile& file : source_tree()) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& name : foreign) {
        EXPECT_EQ((" " + file.lines[i]).find(name), std::string::npos)
            << file.path << ":" << i + 1 << " names " << name << ", which is nowhere but on one machine";
      }
    }
  }
}

// `make help` prints what follows "##".
TEST(Repository, EveryTargetOfTheMakefileSaysWhatItDoes) {
  const std::regex described("^([a-z0-9-]+):.*  ## .+");
  std::set<std::string> targets, helped;
  for (const std::string& line : lines_of(SLIPWAY_SOURCE_DIR "/Makefile")) {
    std::smatch match;
    if (std::regex_match(line, match, described)) helped.insert(match[1]);
    if (!line.starts_with(".PHONY:")) continue;
    std::istringstream words(line.substr(std::string(".PHONY:").size()));
    for (std::string target; words >> target;) targets.insert(target);
  }
  EXPECT_FALSE(targets.empty());
  EXPECT_EQ(helped, targets);
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
  const std::regex server("https?://|\\b(?!127\\.0\\.0\\.1|0\\.0\\.0\\.0)[0-9]{1,3}(\\.[0-9]{1,3}){3}\\b|index-url");
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
}  // namespace slipway::test
