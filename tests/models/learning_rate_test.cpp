// The learning rate against numbers that a person can check: corners, halves and thirds of the closed form.
#include "models/training/learning_rate.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace slipway::test {
namespace {

using testing::DoubleEq;
using testing::Pointwise;

// Rates of `steps` steps of `batch` samples from the beginning on, in units of 1/1000.
std::vector<double> thousandths(const LearningRateSchedule& schedule, int steps, std::int64_t batch) {
  std::vector<double> rates;
  for (int step = 0; step < steps; ++step) rates.push_back(1000 * learning_rate(1, schedule, step * batch, batch));
  return rates;
}

TEST(LearningRate, WithoutAScheduleIsTheSameNumberForEver) {
  for (const std::int64_t samples : {0L, 1L, 1L << 40, 1L << 62}) EXPECT_EQ(learning_rate(0.1, {}, samples, 8), 0.1);
}

TEST(LearningRate, RisesWithTheStepsOwnSamplesCounted) {
  EXPECT_THAT(thousandths({.warmup_samples = 32}, 6, 8),
              Pointwise(DoubleEq(), {250., 500., 750., 1000., 1000., 1000.}));
  EXPECT_THAT(thousandths({.warmup_samples = 20}, 4, 8), Pointwise(DoubleEq(), {400., 800., 1000., 1000.}))
      << "a step that the warm-up ends in has the highest rate";
  EXPECT_EQ(learning_rate(0.1, {.warmup_samples = 5}, 0, 8), 0.1) << "a warm-up within the first step is none";
}

TEST(LearningRate, LosesNeitherTheFirstNorTheLastStepOfADecay) {
  const LearningRateSchedule line{.warmup_samples = 32, .decay = DecayStyle::linear, .decay_samples = 80};
  EXPECT_THAT(thousandths(line, 11, 8), Pointwise(DoubleEq(), {250., 500., 750., 1000., 1000., 5000. / 6, 4000. / 6,
                                                               500., 2000. / 6, 1000. / 6, 0.}));
}

// cos(π/3) = 1/2: after a third of the way a quarter of the height is gone, after half of it half, after two thirds
// three quarters.
TEST(LearningRate, FollowsHalfACosineToTheLeast) {
  const LearningRateSchedule cosine{.decay = DecayStyle::cosine, .decay_samples = 48, .least = 0.2};
  EXPECT_THAT(thousandths(cosine, 8, 8), Pointwise(testing::DoubleNear(1e-10), {1000., 946.4101615137755, 800., 600.,
                                                                                400., 253.5898384862245, 200., 200.}));
}

TEST(LearningRate, IsExactWhereTheDecayBeginsAndEnds) {
  for (const DecayStyle style : {DecayStyle::linear, DecayStyle::cosine}) {
    const LearningRateSchedule schedule{.warmup_samples = 24, .decay = style, .decay_samples = 1000, .least = 0.03};
    EXPECT_EQ(learning_rate(0.7, schedule, 24, 8), 0.7);
    EXPECT_EQ(learning_rate(0.7, schedule, 1000, 8), 0.03);
    EXPECT_EQ(learning_rate(0.7, schedule, 1L << 60, 8), 0.03);
  }
}

TEST(LearningRate, OfADecayThatEndsWithinTheWarmUpIsTheLeastAfterIt) {
  const LearningRateSchedule schedule{
      .warmup_samples = 24, .decay = DecayStyle::cosine, .decay_samples = 16, .least = 0.5};
  EXPECT_THAT(thousandths(schedule, 4, 8), Pointwise(DoubleEq(), {1000. / 3, 2000. / 3, 1000., 500.}));
}

// So a training that continues with another batch stays on the same curve.
TEST(LearningRate, AfterTheWarmUpDependsOnTheSamplesAndNotOnTheBatch) {
  const LearningRateSchedule schedule{.warmup_samples = 16, .decay = DecayStyle::cosine, .decay_samples = 160};
  for (std::int64_t samples = 16; samples < 200; samples += 16)
    EXPECT_EQ(learning_rate(0.1, schedule, samples, 8), learning_rate(0.1, schedule, samples, 64));
}

TEST(LearningRate, RisesInTheWarmUpAndNeverAfterItAndStaysWithinItsBounds) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto warmup = static_cast<std::int64_t>(random() % 50), decay = static_cast<std::int64_t>(1 + random() % 500);
    const auto batch = static_cast<std::int64_t>(1 + random() % 20);
    const LearningRateSchedule schedule{warmup, static_cast<DecayStyle>(random() % 3), warmup + decay, 0.001};
    double before = 0;
    for (std::int64_t samples = 0; samples < 2 * (warmup + decay); samples += batch) {
      const double rate = learning_rate(0.003, schedule, samples, batch);
      EXPECT_GT(rate, 0);
      EXPECT_LE(rate, 0.003);
      if (samples < warmup) {
        EXPECT_GE(rate, before);
      } else {
        EXPECT_GE(rate, 0.001);
      }
      if (samples >= warmup + batch) {
        EXPECT_LE(rate, before);
      }
      before = rate;
    }
  }
}

}  // namespace
}  // namespace slipway::test
