// The study folders: their scenarios load, and the findings in their READMEs are what the commands print.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "scenarios/language/scenario.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

const std::string root = SLIPWAY_SOURCE_DIR;

std::string printed_by(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, count);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

class Studies : public CommandTest {};

TEST_F(Studies, EveryScenarioOfAStudyLoads) {
  int scenarios = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/scenarios")) {
    const std::string path = entry.path().string();
    const bool study = std::filesystem::exists(entry.path().parent_path() / "runs.csv");
    if (!study || entry.path().extension() != ".yaml") continue;
    const LoadResult result = load_scenario(path, {});
    EXPECT_TRUE(result.errors.empty()) << path << ": " << describe(result.errors);
    ++scenarios;
  }
  EXPECT_GE(scenarios, 5);
}

// "<!-- findings ARGUMENTS -->", then a block with findings.awk's output for these rows.
TEST_F(Studies, FindingsInTheReadmesAreWhatTheCommandsPrint) {
  for (const std::string study : {"hagemann-2023", "fujii-2024"}) {
    const std::string folder = root + "/scenarios/studies/" + study, text = text_of(folder + "/README.md");
    const std::regex block("<!-- findings ?([^>]*?) ?-->\n```\n([^`]*)```");
    int blocks = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), block), end; at != end; ++at, ++blocks) {
      if ((*at)[1].length() > 0) continue;  // by an engine of the task graph: carries its date
      const Answer answer = slipway_with({"validate", folder + "/runs.csv", "--rows", path("rows.csv")});
      ASSERT_EQ(answer.status, status_done) << answer.err;
      EXPECT_EQ((*at)[2], printed_by("awk -f " + folder + "/findings.awk " + path("rows.csv")))
          << "write into " << study << "/README.md what the command prints now, and read what changed";
    }
    EXPECT_EQ(blocks, 2) << study;
  }
}

// Every table that a study's run.sh prints stands in its README unchanged.
TEST_F(Studies, TablesInTheReadmesAreWhatRunShPrints) {
  for (const auto& [study, expected] : {std::pair{"pipefisher-2022", 2}, std::pair{"schedules", 1},
                                        std::pair{"topologies", 2}, std::pair{"kernels", 5}}) {
    const std::string folder = root + "/scenarios/studies/" + study, readme = text_of(folder + "/README.md");
    const std::string printed = "\n" + printed_by("BUILD='" SLIPWAY_BINARY_DIR "' " + folder + "/run.sh");
    const std::regex table("\n((scenario|name|topology|collectives|GPU) [^]*?)\n\n");
    int tables = 0;
    for (std::sregex_iterator at(printed.begin(), printed.end(), table), end; at != end; ++at, ++tables)
      EXPECT_NE(readme.find("\n" + (*at)[1].str() + "\n```"), std::string::npos)
          << "write into " << study << "/README.md what run.sh prints now, and read what changed:\n"
          << (*at)[1];
    EXPECT_EQ(tables, expected) << study;
  }
}

}  // namespace
}  // namespace slipway::test
