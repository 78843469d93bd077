// A disk fills while a run writes its losses: the error appears beside the lanes, which wait for each other meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/run/run_files.h"
#include "tests/support/process_limits.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double limit_s = 10;     // promised: every rank has ended within it
constexpr double starting_s = 60;  // on a busy machine
constexpr int ranks = 4;

// Pipeline 2 × data 2, for a very long time. 512 bytes a file are some 17 losses.
std::string command_with_small_files(const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_bundle_file(folder + "/run.slip", endless_bundle(2, 2));
  return "ulimit -f 1; exec " SLIPWAY_RANK_PROGRAM " " + folder + "/run.slip --connect-timeout 120 --out " + folder;
}

TEST(FullDisk, OfTheLossesEndsAllRanksNowAndNotWhenTheTrainingIsOver) {
  if (!file_sizes_can_be_limited) GTEST_SKIP() << "no program runs within a limit of file sizes here";
  const std::string folder = temporary_folder().path("full");
  RankProcesses processes("/bin/sh", {"-c", command_with_small_files(folder)}, ranks, folder);
  ASSERT_TRUE(processes.printed(0, "step 3/", starting_s));
  processes.mark();
  const std::vector<Ended> ended = processes.wait(2 * limit_s);
  for (int rank = 0; rank < ranks; ++rank) {
    const Ended& each = ended[rank];
    EXPECT_EQ(each.status, 1);
    EXPECT_LT(each.seconds, limit_s);
    const std::string stops = rank == 0 ? "" : "rank " + std::to_string(rank) + " stops: ";
    EXPECT_THAT(each.errors, StartsWith(stops + "rank 0 failed: step "));
    EXPECT_THAT(each.errors, HasSubstr("end of the step: cannot write " + losses_path(folder)));
  }
}

}  // namespace
}  // namespace slipway::test
