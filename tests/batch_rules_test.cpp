// The rules by hand, and what holds of all of them.
#include "models/batch_rules.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "models/norm_test.h"

namespace slipway {
namespace {

BatchPlan plan(BatchRule rule) {
  BatchPlan plan{rule, {}, 1000, {{500, 32}, {900, 64}}, 0.5, 1, 4};
  for (std::int64_t rung = 8; rung <= 64; rung += 8) plan.rungs.push_back(rung);
  return plan;
}

TEST(BatchRules, ABatchIsRoundedUpToARungAndCappedAtTheLast) {
  const std::vector<std::int64_t> rungs{8, 16, 64};
  EXPECT_EQ(rung_of(rungs, 1), 8);
  EXPECT_EQ(rung_of(rungs, 16), 16);
  EXPECT_EQ(rung_of(rungs, 16.5), 64);
  EXPECT_EQ(rung_of(rungs, 1e9), 64);
}

TEST(BatchRules, ConstantStays) { EXPECT_EQ(next_batch(plan(BatchRule::constant), {8, 100, 1e9, 1e9}), 8); }

TEST(BatchRules, LinearReachesTheLargestWithTheWarmUpsLastSample) {
  EXPECT_EQ(next_batch(plan(BatchRule::linear), {8, 0, 0, 0}), 8);
  EXPECT_EQ(next_batch(plan(BatchRule::linear), {8, 1, 500, 0}), 40);  // 8 + 56/2 = 36, rounded up
  EXPECT_EQ(next_batch(plan(BatchRule::linear), {56, 9, 1000, 0}), 64);
  EXPECT_EQ(next_batch(plan(BatchRule::linear), {64, 9, 1e6, 0}), 64);
}

TEST(BatchRules, StagesBeginWithTheirSample) {
  EXPECT_EQ(next_batch(plan(BatchRule::stages), {8, 0, 0, 0}), 8);
  EXPECT_EQ(next_batch(plan(BatchRule::stages), {8, 1, 499, 0}), 8);
  EXPECT_EQ(next_batch(plan(BatchRule::stages), {8, 1, 500, 0}), 32);
  EXPECT_EQ(next_batch(plan(BatchRule::stages), {32, 1, 2000, 0}), 64);
}

TEST(BatchRules, TheNormTestTakesTheSmallestRungThatItAsksFor) {
  // B = 24, η = ½: Var/‖ḡ‖² of 16 is 1.5/2.5, so 16·0.6·4 = 38.4 are asked for.
  EXPECT_EQ(next_batch(plan(BatchRule::norm_test), {16, 1, 16, 24}), 40);
  EXPECT_EQ(next_batch(plan(BatchRule::norm_test), {16, 0, 0, 24}), 16)
      << "before the first step there is no gradient";
  EXPECT_EQ(next_batch(plan(BatchRule::norm_test), {16, 1, 16, 1e9}), 64);
  EXPECT_EQ(next_batch(plan(BatchRule::norm_test), {16, 1, 16, 1e-9}), 16);
}

TEST(BatchRules, TheNormTestTestsEverySoManySteps) {
  BatchPlan rare = plan(BatchRule::norm_test);
  rare.test_every = 10;
  EXPECT_EQ(next_batch(rare, {16, 9, 16, 1e9}), 16);
  EXPECT_EQ(next_batch(rare, {16, 10, 16, 1e9}), 64);
}

TEST(BatchRules, NoBatchShrinks) {
  for (const BatchRule rule :
       {BatchRule::constant, BatchRule::linear, BatchRule::stages, BatchRule::norm_test})
    EXPECT_EQ(next_batch(plan(rule), {48, 3, 10, 1e-9}), 48);
}

TEST(BatchRules, RefuseAPlanThatLacksWhatItNeeds) {
  BatchPlan linear = plan(BatchRule::linear), stages = plan(BatchRule::stages),
            test = plan(BatchRule::norm_test), empty = plan(BatchRule::constant);
  linear.warmup = 0, stages.stages.clear(), test.workers = 1, empty.rungs.clear();
  for (const BatchPlan& wrong : {linear, stages, test, empty})
    EXPECT_THROW(next_batch(wrong, {8, 1, 8, 100}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway
