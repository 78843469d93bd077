// SimGrid is loaded by the first simulation: commands without one do not need it, and its absence is a clear error.
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "sim/load_engine.h"

namespace slipway::test {
namespace {

namespace fs = std::filesystem;

// Exit status and output of a shell command.
std::pair<int, std::string> run(const std::string& command) {
  std::pair<int, std::string> result;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part;
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) result.second += part.data();
  result.first = pclose(pipe);
  return result;
}

// The program and libslipway.so alone in a folder.
class WithoutSimgrid : public testing::Test {
 protected:
  WithoutSimgrid() {
    fs::create_directories(folder_);
    for (const auto& entry : fs::directory_iterator(SLIPWAY_BINARY_DIR))
      if (entry.path().filename().string().starts_with("libslipway.so"))
        fs::copy_file(fs::canonical(entry.path()), folder_ / entry.path().filename());
    fs::copy_file(SLIPWAY_PROGRAM, folder_ / "slipway");
  }
  ~WithoutSimgrid() override { fs::remove_all(folder_); }

  std::pair<int, std::string> slipway(const std::string& words) const {
    return run("LD_LIBRARY_PATH=" + folder_.string() + " " + (folder_ / "slipway").string() + " " + words);
  }

  const std::string scenario_ = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";
  const fs::path folder_ = fs::path(testing::TempDir()) / ("without_simgrid_" + std::to_string(getpid()));
};

TEST_F(WithoutSimgrid, ASimulationNamesTheMissingFileAndWhereItBelongs) {
  const auto [status, output] = slipway("simulate " + scenario_);
  EXPECT_NE(status, 0);
  EXPECT_NE(output.find("cannot load libslipway-simgrid.so"), std::string::npos) << output;
  EXPECT_NE(output.find("put the file of this build beside libslipway.so"), std::string::npos) << output;
}

TEST_F(WithoutSimgrid, CommandsThatSimulateNothingAnswer) {
  for (const std::string& words : {std::string("--help"), std::string("list schedules"),
                                   "lower " + scenario_ + " -o " + (folder_ / "run.slip").string()}) {
    const auto [status, output] = slipway(words + " > /dev/null");
    EXPECT_EQ(status, 0) << output;
  }
}

TEST_F(WithoutSimgrid, ItIsFoundAgainBesideTheLibrary) {
  fs::copy_file(SLIPWAY_BINARY_DIR "/libslipway-simgrid.so", folder_ / "libslipway-simgrid.so");
  const auto [status, output] = slipway("simulate " + scenario_);
  EXPECT_EQ(status, 0) << output;
}

TEST(LoadedEngine, IsTheSameFunctionEachTime) { EXPECT_EQ(&sim::loaded_engine(), &sim::loaded_engine()); }

TEST(LoadedEngine, IsNotLoadedByAProgramThatDoesNotSimulate) {
  const auto [status, output] = run("LD_DEBUG=libs " SLIPWAY_PROGRAM " --help");
  EXPECT_EQ(status, 0);
  EXPECT_NE(output.find("libslipway.so"), std::string::npos);
  EXPECT_EQ(output.find("libsimgrid"), std::string::npos);
}

}  // namespace
}  // namespace slipway::test
