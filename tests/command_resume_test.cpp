// `slipway execute` with checkpoints, as a user lives through it: killed and resumed, resumed in another layout, a
// damaged checkpoint, a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "exec/checkpoint_folder.h"
#include "exec/run_files.h"
#include "tests/resumed_runs.h"

namespace slipway {
namespace {

using testing::DoubleEq;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

class KilledAt : public testing::TestWithParam<int> {};

TEST_P(KilledAt, AnyMomentARunResumesWithTheLossesOfTheUninterruptedOneToTheLastBit) {
  const std::string folder = fresh("killed" + std::to_string(GetParam()));
  {
    RankProcesses run = started(folder, {"--set run.checkpoint_steps=2", "--set run.steps=1000000"});
    ASSERT_TRUE(run.printed(0, "step " + std::to_string(GetParam()) + "/", starting_s));
    run.kill(0, SIGKILL);  // its ranks die with it
    run.wait(promised_s);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until the ranks are gone
  std::vector<std::int64_t> steps = complete_checkpoints(folder);
  while (!steps.empty() && steps.back() >= all_steps) {  // the kill came late on a fast machine
    std::filesystem::remove_all(checkpoint_path(folder, steps.back()));
    steps.pop_back();
  }
  // Killed before anything was saved, it begins again; what was half written is no checkpoint.
  const Ended resumed =
      executed(folder, {"--set run.checkpoint_steps=2", steps.empty() ? "" : "--resume latest"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  if (!steps.empty()) {
    EXPECT_THAT(resumed.output, HasSubstr("from step " + std::to_string(steps.back())));
  }
  EXPECT_EQ(losses_of(folder), whole_losses());
  EXPECT_EQ(complete_checkpoints(folder).back(), all_steps);  // the end is saved as well
  EXPECT_LE(complete_checkpoints(folder).size(), 2u);         // run.checkpoints_kept
}
INSTANTIATE_TEST_SUITE_P(Step, KilledAt, testing::Values(2, 3, 5));

std::vector<double> numbers_of(const std::string& csv) {
  std::vector<double> losses;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) losses.push_back(std::stod(line.substr(line.find(',', line.find(',') + 1) + 1)));
  return losses;
}

// The last column of losses.csv.
std::vector<double> rates_of(const std::string& csv) {
  std::vector<double> rates;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) rates.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return rates;
}

struct Layouts {
  const char *name, *first, *second;
};
class OtherLayout : public testing::TestWithParam<Layouts> {};

TEST_P(OtherLayout, GoesOnFromACheckpointAsIfNothingHadHappened) {
  const Layouts layouts = GetParam();
  const std::string first = fresh(std::string("first") + layouts.name), second = fresh(std::string("second") + layouts.name);
  const Ended one = executed(first, {layouts.first, "--set run.steps=4", "--set run.checkpoint_steps=4"});
  ASSERT_EQ(one.status, 0) << one.errors;
  const Ended other = executed(second, {layouts.second, "--resume " + first});
  ASSERT_EQ(other.status, 0) << other.errors;
  const std::vector<double> expected = numbers_of(whole_losses()), found = numbers_of(losses_of(second));
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[4 + i], 1e-9 * std::abs(expected[4 + i])) << "step " << 4 + i;
}
INSTANTIATE_TEST_SUITE_P(
    From, OtherLayout,
    testing::Values(Layouts{"PipelineToTensor", "", "--set layout.pipeline=1 --set layout.tensor=2"},
                    Layouts{"TensorToSlices", "--set layout.pipeline=1 --set layout.tensor=2",
                            "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=1"},
                    Layouts{"SlicesToPipeline", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=1", ""},
                    Layouts{"ReplicasToOneRank", "--set layout.pipeline=1 --set layout.data=2",
                            "--set layout.pipeline=1 --set cluster.gpus_per_node=1"},
                    Layouts{"PipelineToGatheredWeights", "",
                            "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=3"},
                    Layouts{"GatheredWeightsToContext", "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=3",
                            "--set layout.pipeline=1 --set layout.context=2 --set layout.zero=2"},
                    Layouts{"ChimeraToPipeline", "--set schedule.name=chimera", ""}),
    [](const auto& each) { return each.param.name; });

// A warm-up of three steps of 8 and a decay that ends after eight; lr 0.003.
const std::string scheduled =
    "--set run.optimizer.lr_warmup_samples=24 --set run.optimizer.lr_decay_style=cosine --set run.optimizer.min_lr=0.0003 "
    "--set run.optimizer.lr_decay_samples=64";

TEST(ScheduledRate, GoesOnWhereItWasToTheLastBit) {
  const std::string whole = fresh("rate-whole"), folder = fresh("rate-resumed");
  ASSERT_EQ(executed(whole, {scheduled}).status, 0);
  ASSERT_EQ(executed(folder, {scheduled, "--set run.steps=5", "--set run.checkpoint_steps=5"}).status, 0);
  const Ended resumed = executed(folder, {scheduled, "--resume latest"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, HasSubstr("learning rate: 0.003 after a warm-up of 24 sequences, cosine decay to 0.0003 after 64 sequences"));
  EXPECT_EQ(losses_of(folder), losses_of(whole));
  EXPECT_NE(numbers_of(losses_of(whole)), numbers_of(whole_losses()));
  EXPECT_DOUBLE_EQ(rates_of(losses_of(whole)).front(), 0.001);
}

// The checkpoint counts samples: half of the warm-up of 32 is done, whatever the batch is now. A decay to the end of the
// training ends with what the other batch makes of it: 16 + 3 x 16 sequences.
TEST(ScheduledRate, GoesOnInAnotherLayoutAndBatchBySamples) {
  const std::string set = "--set run.optimizer.lr_warmup_samples=32 --set run.optimizer.lr_decay_style=linear";
  const std::string first = fresh("rate-first"), second = fresh("rate-second");
  const Ended one = executed(first, {set, "--set run.steps=4", "--set run.checkpoint_steps=2"});
  ASSERT_EQ(one.status, 0) << one.errors;
  EXPECT_THAT(rates_of(losses_of(first)), Pointwise(DoubleEq(), {0.00075, 0.0015, 0.00225, 0.003}));
  EXPECT_THAT(one.output, HasSubstr("  lr 7.50e-04  "));
  EXPECT_THAT(one.output, HasSubstr("  lr 3.00e-03  "));
  EXPECT_THAT(one.output, Not(HasSubstr("decays to the end of this start")));
  const Ended early = executed(second, {set, "--set run.steps=3", "--resume " + checkpoint_path(first, 2)});
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.errors, HasSubstr("with which the decay ends: 24 (16 of the checkpoint + 1 step x schedule.global_batch 8)"));
  const Ended other = executed(second, {set, "--set run.steps=5", "--set schedule.global_batch=16",
                                        "--set layout.pipeline=1 --set layout.data=2 --set layout.zero=2",
                                        "--resume " + checkpoint_path(first, 2)});
  ASSERT_EQ(other.status, 0) << other.errors;
  EXPECT_THAT(other.output, HasSubstr("note: the learning rate decays to the end of this start, step 5, "));
  EXPECT_THAT(rates_of(losses_of(second)), Pointwise(DoubleEq(), {0.003, 0.003, 0.0015}));
}

}  // namespace
}  // namespace slipway
