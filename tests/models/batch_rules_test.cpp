// The batch rules, by hand and by their common properties.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "models/training/batch_rules.h"
#include "models/training/norm_test.h"

namespace slipway::test {

namespace {

BatchSchedule schedule(BatchRule rule) {
  BatchSchedule schedule{rule, {}, 1000, {{500, 32}, {900, 64}}, 0.5, 1, 4};
  for (std::int64_t rung = 8; rung <= 64; rung += 8) schedule.rungs.push_back(rung);
  return schedule;
}

TEST(BatchRules, ABatchIsRoundedUpToARungAndCappedAtTheLast) {
  const std::vector<std::int64_t> rungs{8, 16, 64};
  EXPECT_EQ(rung_of(rungs, 1), 8);
  EXPECT_EQ(rung_of(rungs, 16), 16);
  EXPECT_EQ(rung_of(rungs, 16.5), 64);
  EXPECT_EQ(rung_of(rungs, 1e9), 64);
}

TEST(BatchRules, ConstantStays) { EXPECT_EQ(next_batch(schedule(BatchRule::constant), {8, 100, 1e9, 1e9}), 8); }

TEST(BatchRules, LinearReachesTheLargestWithTheWarmUpsLastSample) {
  EXPECT_EQ(next_batch(schedule(BatchRule::linear), {8, 0, 0, 0}), 8);
  EXPECT_EQ(next_batch(schedule(BatchRule::linear), {8, 1, 500, 0}), 40);  // 8 + 56/2 = 36, rounded up
  EXPECT_EQ(next_batch(schedule(BatchRule::linear), {56, 9, 1000, 0}), 64);
  EXPECT_EQ(next_batch(schedule(BatchRule::linear), {64, 9, 1e6, 0}), 64);
}

TEST(BatchRules, StagesBeginWithTheirSample) {
  EXPECT_EQ(next_batch(schedule(BatchRule::stages), {8, 0, 0, 0}), 8);
  EXPECT_EQ(next_batch(schedule(BatchRule::stages), {8, 1, 499, 0}), 8);
  EXPECT_EQ(next_batch(schedule(BatchRule::stages), {8, 1, 500, 0}), 32);
  EXPECT_EQ(next_batch(schedule(BatchRule::stages), {32, 1, 2000, 0}), 64);
}

TEST(BatchRules, TheNormTestTakesTheSmallestRungThatItAsksFor) {
  // B = 24, η = ½: Var/‖ḡ‖² of 16 is 1.5/2.5, so the test asks for 16·0.6·4 = 38.4.
  EXPECT_EQ(next_batch(schedule(BatchRule::norm_test), {16, 1, 16, 24}), 40);
  EXPECT_EQ(next_batch(schedule(BatchRule::norm_test), {16, 0, 0, 24}), 16)
      << "before the first step there is no gradient";
  EXPECT_EQ(next_batch(schedule(BatchRule::norm_test), {16, 1, 16, 1e9}), 64);
  EXPECT_EQ(next_batch(schedule(BatchRule::norm_test), {16, 1, 16, 1e-9}), 16);
}

TEST(BatchRules, TheNormTestTestsEverySoManySteps) {
  BatchSchedule rare = schedule(BatchRule::norm_test);
  rare.test_every = 10;
  EXPECT_EQ(next_batch(rare, {16, 9, 16, 1e9}), 16);
  EXPECT_EQ(next_batch(rare, {16, 10, 16, 1e9}), 64);
}

TEST(BatchRules, NoBatchShrinks) {
  for (const BatchRule rule : {BatchRule::constant, BatchRule::linear, BatchRule::stages, BatchRule::norm_test})
    EXPECT_EQ(next_batch(schedule(rule), {48, 3, 10, 1e-9}), 48);
}

TEST(BatchRules, RefuseAPlanThatLacksWhatItNeeds) {
  BatchSchedule linear = schedule(BatchRule::linear), stages = schedule(BatchRule::stages),
                test = schedule(BatchRule::norm_test), empty = schedule(BatchRule::constant);
  linear.warmup = 0, stages.stages.clear(), test.workers = 1, empty.rungs.clear();
  for (const BatchSchedule& wrong : {linear, stages, test, empty})
    EXPECT_THROW(next_batch(wrong, {8, 1, 8, 100}), std::invalid_argument);
}

}  // namespace

// The norm test against gradients drawn at random, closed forms and degenerate input.

namespace {

// Gradients of J workers around a true one: each share of b/J samples has noise of total variance tr Σ·J/b.
GradientNorms drawn(std::mt19937_64& random, int workers, int dimensions, double noise_of_batch) {
  std::normal_distribution<double> normal;
  std::vector<double> mean(dimensions, 0.0);
  GradientNorms norms{workers, 0, 0};
  const double signal = 1 / std::sqrt(dimensions), noise = std::sqrt(noise_of_batch * workers / dimensions);
  for (int j = 0; j < workers; ++j)
    for (double& sum : mean) {
      const double g = signal + noise * normal(random);
      norms.sum_of_squares += g * g;
      sum += g / workers;
    }
  for (const double g : mean) norms.square_of_mean += g * g;
  return norms;
}

TEST(NormTest, TheVarianceOfRandomGradientsIsEstimatedWithoutBias) {
  std::mt19937_64 random(1);
  for (const double noise : {0.1, 1.0, 10.0}) {
    double sum = 0, mean_square = 0;
    constexpr int draws = 4000;
    for (int i = 0; i < draws; ++i) {
      const GradientNorms norms = drawn(random, 4, 5, noise);
      sum += gradient_variance(norms) / draws, mean_square += norms.square_of_mean / draws;
    }
    EXPECT_NEAR(sum, noise, 0.05 * noise);
    EXPECT_NEAR(mean_square, 1 + noise, 0.05 * (1 + noise)) << "the measured norm holds the noise";
  }
}

TEST(NormTest, TheVarianceIsThatOfTwoGradientsByHand) {
  // g = (1, 0) and (0, 1): mean (½, ½), deviations ½ each way: Σ‖g_j − ḡ‖² = 1, / (2·1).
  EXPECT_DOUBLE_EQ(gradient_variance({2, 2, 0.5}), 0.5);
  // Var = ‖ḡ‖²: passes with η = 1, asks for four times the batch with η = ½.
  EXPECT_TRUE(passes_norm_test({2, 2, 0.5}, 1));
  EXPECT_FALSE(passes_norm_test({2, 2, 0.5}, 0.5));
  EXPECT_EQ(batch_by_norm_test(64, {2, 2, 0.5}, 0.5), 256);
  EXPECT_EQ(batch_by_norm_test(64, {2, 2, 0.5}, 1), 64);
}

TEST(NormTest, ExpectedNormsGiveTheNoiseOfTheBatchWhateverTheNumberOfWorkers) {
  for (const std::int64_t workers : {2, 8, 1000}) {
    const GradientNorms norms = expected_norms(512, 2048, workers);
    EXPECT_NEAR(gradient_variance(norms), 4, 1e-12);
    EXPECT_NEAR(norms.square_of_mean, 5, 1e-12);
  }
}

TEST(NormTest, GrowsTowardsTheBatchThatItIsContentWithAndByAtMostOneOverEtaSquared) {
  constexpr double noise = 10'000, eta = 0.5;
  std::int64_t batch = 16;
  for (int i = 0; i < 60; ++i) {
    const auto next =
        static_cast<std::int64_t>(batch_by_norm_test(batch, expected_norms(static_cast<double>(batch), noise, 8), eta));
    EXPECT_GE(next, batch);
    EXPECT_LE(static_cast<double>(next), std::ceil(static_cast<double>(batch) / (eta * eta)));
    batch = next;
  }
  EXPECT_NEAR(static_cast<double>(batch), batch_content_with(noise, eta), 1);
  EXPECT_DOUBLE_EQ(batch_content_with(noise, eta), 30'000);
  EXPECT_EQ(batch_content_with(noise, 1), 0)
      << "with eta 1 every batch passes: the measured norm is never below its noise";
  EXPECT_NEAR(batch_content_with(noise, 0.01) / (noise / 1e-4), 1, 1e-3) << "for small eta it is B/eta²";
}

TEST(NormTest, SaysWhatItCannotTell) {
  EXPECT_THROW(gradient_variance({1, 4, 4}), std::invalid_argument);
  EXPECT_THROW(gradient_variance({2, -1, 0}), std::invalid_argument);
  EXPECT_THROW(gradient_variance({2, std::nan(""), 0}), std::invalid_argument);
  EXPECT_THROW(gradient_variance({2, 1, 1}), std::invalid_argument) << "2·1 > 1: no two gradients have these norms";
  EXPECT_THROW(passes_norm_test({2, 2, 0.5}, 0), std::invalid_argument);
  EXPECT_EQ(gradient_variance({2, 1, 0.50001}), 0) << "rounding";
}

TEST(NormTest, AGradientThatIsZeroPassesAndOneThatCancelsAsksForAllThereIs) {
  EXPECT_EQ(batch_by_norm_test(64, {2, 0, 0}, 0.5), 64);
  EXPECT_EQ(batch_by_norm_test(64, {2, 2, 0}, 0.5), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rung_of({64, 128}, batch_by_norm_test(64, {2, 2, 0}, 0.5)), 128);
}

}  // namespace

}  // namespace slipway::test
