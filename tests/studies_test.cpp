// The study folders: their scenarios load, and their findings can be asked of their runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scenarios/scenario.h"
#include "tests/command_test.h"

namespace slipway {
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

TEST_F(Studies, FindingsAreAskedOfEveryTable) {
  for (const std::string study : {"hagemann-2023", "fujii-2024"}) {
    const std::string folder = root + "/scenarios/" + study;
    const Answer answer = slipway_with({"validate", folder + "/runs.csv", "--rows", path("rows.csv")});
    ASSERT_EQ(answer.status, status_done) << answer.err;
    const std::string findings = printed_by("awk -f " + folder + "/findings.awk " + path("rows.csv"));
    EXPECT_GE(std::count(findings.begin(), findings.end(), '\n'), 6) << findings;
  }
}

}  // namespace
}  // namespace slipway
