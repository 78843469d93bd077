// Ranks started by Open MPI's mpirun find each other by its variables and train like those of `slipway execute`. A
// failure ends all of them within the promised ten seconds. Slurm's srun differs only in its variables
// (tests/exec/arguments_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/process/arguments.h"
#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

constexpr double promised_s = 10;

class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "Open MPI's mpirun is not on PATH (Debian: openmpi-bin)";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);  // containers
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    Step input = tiny_input(tiny_llama(2, false));
    input.layout.pipeline = 2;
    Bundle bundle = tiny_bundle(input);
    bundle.run.steps = 5;
    write_bundle_file(bundle_, bundle);
  }

  // Runs `command` as each of `ranks` ranks, with $OMPI_COMM_WORLD_RANK set; OUT in it is a folder.
  Ended run(int ranks, std::string command, const std::string& out) {
    if (const auto at = command.find("OUT"); at != std::string::npos) command.replace(at, 3, out);
    const std::string log = temporary_folder().path("log");
    const auto begin = Clock::now();
    const int status = std::system(("mpirun --oversubscribe --bind-to none -n " + std::to_string(ranks) + " sh -c '" +
                                    command + "' > " + log + ".out 2> " + log + ".err")
                                       .c_str());
    return {WEXITSTATUS(status), std::chrono::duration<double>(Clock::now() - begin).count(),
            text_of_file(log + ".out"), text_of_file(log + ".err")};
  }

  std::string bundle_ = temporary_folder().path("run.slip");
  std::string rank_ = std::string("exec ") + SLIPWAY_RANK_PROGRAM + " " + bundle_ + " --out OUT";
};

TEST_F(Mpirun, StartsRanksThatTrainLikeAnyOthers) {
  const std::string mine = temporary_folder().path("mpirun"), other = temporary_folder().path("other");
  const Ended ended = run(2, rank_, mine);
  ASSERT_EQ(ended.status, 0) << ended.errors;
  RankProcesses ranks(SLIPWAY_RANK_PROGRAM, {bundle_, "--out", other}, 2, other);
  for (const Ended& rank : ranks.wait(60)) ASSERT_EQ(rank.status, 0) << rank.errors;
  EXPECT_FALSE(text_of_file(mine + "/rank-0.losses").empty());
  EXPECT_EQ(text_of_file(mine + "/rank-0.losses"), text_of_file(other + "/rank-0.losses"));
}

TEST_F(Mpirun, AWrongNumberOfRanksIsRefused) {
  const Ended ended = run(3, rank_, temporary_folder().path("three"));
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_THAT(ended.errors, HasSubstr("is made for 2 ranks, but 3 were started (launcher: mpirun)"));
  EXPECT_LT(ended.seconds, 3 * promised_s);
}

TEST_F(Mpirun, AMissingPeerIsNamed) {
  const Ended ended =
      run(2, "[ $OMPI_COMM_WORLD_RANK = 1 ] && exec sleep 60; " + rank_, temporary_folder().path("one"));
  EXPECT_EQ(ended.status, 1) << ended.errors;
  EXPECT_THAT(ended.errors, HasSubstr("rank 1 did not join the run within"));
  EXPECT_LT(ended.seconds, 3 * promised_s);
}

}  // namespace
}  // namespace slipway::test
