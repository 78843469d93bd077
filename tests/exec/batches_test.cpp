// The batch of the next step, and the number of steps for which it is known.
#include "exec/rank/batches.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace slipway::test {
namespace {

// Step programs without tasks, because only their batches are used.
Bundle ladder(BatchRule rule, const std::vector<std::int64_t>& rungs) {
  Bundle bundle;
  bundle.run.steps = 100;
  bundle.batches.rule = rule;
  bundle.batches.rungs = rungs;
  bundle.graph.step.global_batch = rungs.front();
  for (std::size_t i = 1; i < rungs.size(); ++i) {
    bundle.larger.emplace_back();
    bundle.larger.back().step.global_batch = rungs[i];
  }
  return bundle;
}

Bundle testing_every(std::int64_t steps) {
  Bundle bundle = ladder(BatchRule::norm_test, {4, 8, 16});
  bundle.batches.eta = 0.5;
  bundle.batches.test_every = steps;
  return bundle;
}

// Two workers whose gradients have this variance; the square of their mean is 1.
GradientNorms with_variance(double variance) { return {2, 2 + 2 * variance, 1}; }

TEST(Batches, ABatchThatStaysIsAskedForOnce) {
  Bundle bundle;
  bundle.graph.step.global_batch = 8;
  bundle.run.steps = 20;
  const Progress begin{5, 40, first_batch(bundle, {5, 40})};
  EXPECT_EQ(begin.batch, 8);
  EXPECT_EQ(span_from(bundle, begin).steps, 15);
  EXPECT_EQ(batch_after(bundle, {6, 48, 8}, {}), 8);
  EXPECT_EQ(span_from(bundle, {20, 160, 8}).steps, 0);
}

TEST(Batches, StagesChangeTheBatchAtTheirSamplesAndNothingIsAskedInBetween) {
  Bundle bundle = ladder(BatchRule::stages, {4, 8, 16});
  bundle.batches.stages = {{10, 8}, {40, 16}};
  // 4, 4, 4 | 8, 8, 8, 8 | 16 ...: a stage begins with the first step after its samples.
  EXPECT_EQ(first_batch(bundle, {}), 4);
  EXPECT_EQ(span_from(bundle, {0, 0, 4}).steps, 3);
  EXPECT_EQ(batch_after(bundle, {3, 12, 4}, {}), 8);
  const StepSpan second = span_from(bundle, {3, 12, 8});
  EXPECT_EQ(second.program, 1);
  EXPECT_EQ(second.steps, 4);
  EXPECT_EQ(span_from(bundle, {7, 44, 16}).steps, 93) << "to the end of the training";
}

TEST(Batches, TheNormTestIsMadeAtItsStepsAndOnlyWithNorms) {
  const Bundle bundle = testing_every(3);
  EXPECT_EQ(first_batch(bundle, {}), 4);
  EXPECT_EQ(span_from(bundle, {0, 0, 4}).steps, 3);
  EXPECT_EQ(span_from(bundle, {4, 16, 4}).steps, 2);
  EXPECT_EQ(batch_after(bundle, {2, 8, 4}, with_variance(9)), 4) << "no test after step 2";
  // Var 0.25 is eta² of the norm, so the test passes. 0.4 asks for 4·0.4/0.25 = 6.4 samples, 9 for too many.
  EXPECT_EQ(batch_after(bundle, {3, 12, 4}, with_variance(0.25)), 4);
  EXPECT_EQ(batch_after(bundle, {3, 12, 4}, with_variance(0.4)), 8);
  EXPECT_EQ(batch_after(bundle, {3, 12, 4}, with_variance(9)), 16);
  EXPECT_EQ(batch_after(bundle, {9, 72, 8}, with_variance(0.01)), 8) << "no rule shrinks a batch";
  EXPECT_EQ(span_from(bundle, {10, 80, 16}).steps, 90) << "the largest batch is asked for nothing more";
  EXPECT_FALSE(is_tested(bundle, {12, 112, 16}));
}

TEST(Batches, ATrainingThatHasDivergedEndsWithTheStepAndWhatToDo) {
  try {
    batch_after(testing_every(1), {7, 28, 4}, GradientNorms{2, std::numeric_limits<double>::quiet_NaN(), 1});
    FAIL() << "no norms of numbers";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("after step 7"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("lower run.optimizer.lr"), std::string::npos) << error.what();
  }
  Bundle over = testing_every(1);
  over.run.steps = 7;
  EXPECT_EQ(batch_after(over, {7, 28, 4}, GradientNorms{2, std::numeric_limits<double>::quiet_NaN(), 1}), 4)
      << "no step follows, and what was done is not lost";
}

TEST(Batches, ATrainingThatGoesOnHasTheBatchThatWasDecided) {
  EXPECT_EQ(first_batch(testing_every(1), {9, 72, 8}), 8);
  EXPECT_EQ(first_batch(testing_every(1), {9, 72, 6}), 8) << "of another ladder: rounded up";
  EXPECT_EQ(first_batch(testing_every(1), {9, 72}), 4) << "an old checkpoint does not say";
  Bundle bundle = ladder(BatchRule::linear, {4, 8, 16});
  bundle.batches.warmup = 100;
  EXPECT_EQ(first_batch(bundle, {9, 50, 4}), 16) << "the samples say it: 10, rounded up";
}

TEST(Batches, PartsOfABatchAreWorkersOrTheirMicroBatches) {
  TaskGraph graph;
  graph.step.layout.data = 2;
  graph.micro_batches = 3;
  graph.placement.copies = 1;
  // Parts are sums over a share of the tokens divided by all tokens: a worker's mean over the number of workers.
  const GradientNorms norms = norms_of(graph, 5, 2);
  EXPECT_EQ(norms.workers, 2);
  EXPECT_EQ(norms.sum_of_squares, 20);
  EXPECT_EQ(norms.square_of_mean, 2);
  graph.step.layout.zero = 2;
  EXPECT_EQ(norms_of(graph, 5, 2).workers, 6);
  graph.step.layout.zero = 0;
  graph.placement.copies = 2;
  EXPECT_EQ(norms_of(graph, 5, 2).workers, 4);
}

}  // namespace
}  // namespace slipway::test
