// Experts on ranks of their own, as processes (the last layout: as ranks of one process): killed and resumed with the
// losses of the uninterrupted run, resumed in other layouts, and compared with their prediction dispatch by dispatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "exec/run/checkpoint_folder.h"
#include "tests/support/resumed_runs.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

// Routers with a bias, which the checkpoint must hold, and a loss that balances them.
const std::string experts =
    "--set model.experts=4 --set model.experts_per_token=2 --set layout.pipeline=1 --set run.router_bias_speed=0.01 "
    "--set run.balancing_loss=0.1 --set run.checkpoint_steps=2";
const std::string two_ranks = "--set layout.data=2 --set layout.expert=2 --set layout.zero=1";

const std::string& losses_of_two_ranks() {
  static const std::string losses = [] {
    const std::string folder = fresh("experts-uninterrupted");
    const Ended ended = executed(folder, {experts, two_ranks});
    EXPECT_EQ(ended.status, 0) << ended.errors;
    return losses_of(folder);
  }();
  return losses;
}

TEST(ExpertParallelRun, KilledResumesWithTheLossesOfTheUninterruptedOneToTheLastBit) {
  const std::string folder = fresh("experts-killed");
  {
    RankProcesses run = started(folder, {experts, two_ranks, "--set run.steps=1000000"});
    ASSERT_TRUE(run.printed(0, "step 5/", starting_s));
    run.kill(0, SIGKILL);  // its ranks die with it
    run.wait(promised_s);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until the ranks are gone
  std::vector<std::int64_t> steps = complete_checkpoints(folder);
  while (!steps.empty() && steps.back() >= all_steps) {  // the kill came late on a fast machine
    std::filesystem::remove_all(checkpoint_path(folder, steps.back()));
    steps.pop_back();
  }
  const Ended resumed = executed(folder, {experts, two_ranks, steps.empty() ? "" : "--resume latest"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_EQ(losses_of(folder), losses_of_two_ranks());
}

class OtherLayoutOfExperts : public testing::TestWithParam<const char*> {};

TEST_P(OtherLayoutOfExperts, GoesOnFromACheckpointAsIfNothingHadHappened) {
  const std::string first = fresh("experts-first"), second = fresh("experts-second");
  const Ended one = executed(first, {experts, two_ranks, "--set run.steps=4"});
  ASSERT_EQ(one.status, 0) << one.errors;
  const Ended other = executed(second, {experts, GetParam(), "--resume " + first});
  ASSERT_EQ(other.status, 0) << other.errors;
  const std::vector<double> expected = numbers_of(losses_of_two_ranks()), found = numbers_of(losses_of(second));
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[4 + i], 1e-9 * std::abs(expected[4 + i])) << "step " << 4 + i;
}
INSTANTIATE_TEST_SUITE_P(From, OtherLayoutOfExperts,
                         testing::Values("--set layout.tensor=2",
                                         "--set layout.data=2 --set layout.expert=2 --set layout.zero=3",
                                         "--set layout.data=4 --set layout.expert=2 --set layout.zero=2 "
                                         "--set cluster.gpus_per_node=4",
                                         "--set layout.data=2 --set layout.expert=1 --set layout.expert_tensor=2",
                                         "--set cluster.gpus_per_node=1",
                                         "--set layout.data=2 --set layout.expert=2 --set cluster.gpus_per_node=1 "
                                         "--set cluster.ranks_per_gpu=2"));

TEST(ExpertParallelRun, OfFourRanksIsComparedWithItsPredictionDispatchByDispatch) {
  const Ended ended =
      executed(fresh("experts-confirm"),
               {experts, "--set layout.tensor=2 --set layout.sequence_parallel=true --set layout.data=2",
                "--set layout.expert=4 --set layout.expert_tensor=1 --set cluster.gpus_per_node=4", "--confirm"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  // 4 layers, 2 micro-batches, there and back, forward and backward, on 4 ranks.
  EXPECT_THAT(ended.output, HasSubstr("all-to-all        128"));
}

}  // namespace
}  // namespace slipway::test
