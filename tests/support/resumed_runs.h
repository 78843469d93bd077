// `slipway execute` of the tiny scenario with checkpoints, as processes, for the tests of resuming.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/losses_csv.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

constexpr double starting_s = 120;  // on a busy machine
constexpr double promised_s = 10;   // promised time from a failure to the end of all ranks
constexpr int all_steps = 8;

inline std::string fresh(const std::string& name) {
  const std::string folder = temporary_folder().path(name);
  std::filesystem::remove_all(folder);
  return folder;
}

// `before`: shell words in front of slipway, such as a limit. `env` and `sh` become slipway.
inline std::string command_line(const std::string& folder, const std::vector<std::string>& more,
                                const std::string& before = "") {
  std::string line = before + "exec env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u MASTER_ADDR -u MASTER_PORT " +
                     std::string(SLIPWAY_PROGRAM) +
                     " execute " SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml --set run.steps=" +
                     std::to_string(all_steps) + " --out " + folder;
  for (const std::string& word : more) line += " " + word;
  return line;
}

inline RankProcesses started(const std::string& folder, const std::vector<std::string>& more,
                             const std::string& before = "") {
  return RankProcesses("/bin/sh", {"-c", command_line(folder, more, before)}, 1, folder,
                       {{"SLIPWAY_RANK", SLIPWAY_RANK_PROGRAM}});
}

inline Ended executed(const std::string& folder, const std::vector<std::string>& more, const std::string& before = "") {
  return started(folder, more, before).wait(starting_s).front();
}

// The uninterrupted run of the two stages.
inline const std::string& whole_losses() {
  static const std::string losses = [] {
    const std::string folder = fresh("uninterrupted");
    const Ended ended = executed(folder, {});
    EXPECT_EQ(ended.status, 0) << ended.errors;
    return losses_of(folder);
  }();
  return losses;
}

}  // namespace slipway::test
