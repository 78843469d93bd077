// Gradients drawn with a known noise give it back, whatever the batch was, and intervals hold it as often as stated.
#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "models/fit/executed_run.h"
#include "models/fit/gradient_noise.h"
#include "models/training/growth.h"
#include "models/training/loss_dynamics.h"
#include "tests/support/drawn_runs.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const DrawnRun run{{5, 1, 30, 0.5, 4000, 3, 2.5}, 4, 40, 0.02};

std::vector<double> growing(std::size_t steps) {
  std::vector<double> batches;
  for (std::size_t i = 0; i < steps; ++i) batches.push_back(i < steps / 3 ? 2000 : i < steps / 2 ? 5000 : 16000);
  return batches;
}

double truth_at(double loss) { return noise_scale_at(run.truth, loss); }

TEST(MeasuredNoise, OfDrawnGradientsIsTheNoiseThatTheyWereDrawnWith) {
  const MeasuredNoise noise = measured_noise(drawn_run(run, growing(4000), 1));
  EXPECT_NEAR(noise.tokens / truth_at(noise.at_loss), 1, 0.03);
  EXPECT_NEAR(noise.exponent, run.truth.noise_exponent, 0.15);
  EXPECT_FALSE(noise.falls);
  for (const NoiseGroup& group : noise.groups)
    EXPECT_NEAR(group.noise_tokens / truth_at(group.loss), 1, 0.3) << group.first;
}

TEST(MeasuredNoise, ItsIntervalsHoldTheTruthAsOftenAsTheySay) {
  constexpr int runs = 300;
  int held = 0, exponent_held = 0;
  for (int seed = 0; seed < runs; ++seed) {
    const MeasuredNoise noise = measured_noise(drawn_run(run, growing(240), static_cast<std::uint64_t>(seed)));
    const double truth = truth_at(noise.at_loss);
    held += noise.interval->least < truth && truth < noise.interval->most;
    const Interval exponent = noise.exponent_interval.value();
    exponent_held += exponent.least < run.truth.noise_exponent && run.truth.noise_exponent < exponent.most;
  }
  // 95 % of 300 are 285, with a standard deviation of 4; a ratio's bias takes a little.
  EXPECT_GE(held, 270);
  EXPECT_GE(exponent_held, 270);
  EXPECT_LT(held + exponent_held, 2 * runs) << "an interval that always holds says nothing";
}

TEST(MeasuredNoise, DoesNotAskWhichBatchMeasuredIt) {
  const DrawnRun constant{{5, 1, 30, 0.5, 4000, 3, 0}, 8, 40, 0};
  const auto of = [&](double batch) {
    return measured_noise(drawn_run(constant, std::vector<double>(1500, batch), 7)).tokens;
  };
  EXPECT_NEAR(of(1000) / 4000, 1, 0.1);
  EXPECT_NEAR(of(30000) / 4000, 1, 0.05);
}

TEST(MeasuredNoise, TakesAnExponentThatIsGiven) {
  const auto steps = drawn_run(run, growing(400), 3);
  const MeasuredNoise noise = measured_noise(steps, 1.25);
  EXPECT_EQ(noise.exponent, 1.25);
  EXPECT_FALSE(noise.exponent_interval);
  EXPECT_EQ(noise.at_loss, measured_noise(steps).at_loss);
}

TEST(MeasuredNoise, ThatFallsWithTheLossIsHeldAtAConstantAndSaysSo) {
  std::vector<GradientStep> steps = drawn_run(run, growing(400), 3);
  for (GradientStep& step : steps) step.loss = 10 - step.loss;  // now the loss rises while the noise grows
  const MeasuredNoise noise = measured_noise(steps);
  EXPECT_TRUE(noise.falls);
  EXPECT_EQ(noise.exponent, 0);
  EXPECT_FALSE(noise.exponent_interval);
}

TEST(MeasuredNoise, IsNotMadeUpWhereStepsAreTooFewOrTheirGradientsDrowned) {
  const auto reason = [](const std::vector<GradientStep>& steps) { return why_unmeasured(steps); };
  EXPECT_THAT(reason(drawn_run(run, growing(19), 1)), HasSubstr("at least 20 steps; there are 19"));
  std::vector<GradientStep> drowned = drawn_run(run, growing(100), 1);
  for (std::size_t i = 40; i < drowned.size(); ++i) drowned[i].square = drowned[i].variance / 2;
  EXPECT_THAT(reason(drowned), HasSubstr("noise drowns the gradient"));
  EXPECT_THROW((void)measured_noise(drowned), std::invalid_argument);
  EXPECT_EQ(reason(drawn_run(run, growing(20), 1)), "");
}

TEST(MeasuredNoise, RefusesNumbersThatNoStepHas) {
  std::vector<GradientStep> steps = drawn_run(run, growing(50), 1);
  steps[17].variance = -1e-9;
  EXPECT_THAT([&] { (void)measured_noise(steps); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("finite norms from 0 on")));
}

}  // namespace

// A run with known numbers gives them back, and a fit to one batch predicts another batch's run.

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double sequence = 100;
const LossDynamics truth{5, 1, 30, 0.5, 4000, 3, 2.5};
// Many workers: their norms are nearly what is expected.
const DrawnRun exact{truth, 64, 40, 0};

RunFit fitted(const std::vector<GradientStep>& steps, std::size_t from = 0) {
  return fit_run(steps, from, measured_noise(std::span(steps).subspan(from)), truth.floor);
}

TEST(RunDynamics, OfARunWithKnownNumbersAreTheseNumbers) {
  const RunFit fit = fitted(drawn_run(exact, std::vector<double>(1200, 6000), 1));
  EXPECT_NEAR(fit.dynamics.start, truth.start, 0.01);
  EXPECT_NEAR(fit.dynamics.offset / truth.offset, 1, 0.03);
  EXPECT_NEAR(fit.dynamics.exponent / truth.exponent, 1, 0.02);
  EXPECT_LT(fit.error, 1e-3);
}

TEST(RunDynamics, PredictLossesOfAnotherBatchAsThatRunHasThem) {
  const RunFit fit = fitted(drawn_run(exact, std::vector<double>(1200, 6000), 1));
  for (const double batch : {800.0, 50000.0}) {
    const std::vector<GradientStep> other = drawn_run(exact, std::vector<double>(400, batch), 2);
    const std::vector<double> predicted = predicted_losses(fit.dynamics, std::vector<double>(400, batch));
    for (std::size_t i = 0; i < other.size(); i += 50)
      EXPECT_NEAR(predicted[i] / other[i].loss, 1, 0.01) << batch << ' ' << i;
    const double target = other[300].loss;
    EXPECT_NEAR(*predicted_tokens_to(fit.dynamics, std::vector<double>(400, batch), target) / (300 * batch), 1, 0.03);
    EXPECT_NEAR(*tokens_to_mean_loss(other, 1, target) / (300 * batch), 1, 1e-12);
  }
}

TEST(RunDynamics, PredictLossesAsTheCourseOfAPlanDoes) {
  const std::vector<double> losses = predicted_losses(truth, std::vector<double>(201, 60 * sequence));
  const Course course = course_of({BatchRule::constant, {60}, 0, {}, 0, 1, 2}, truth, sequence, {200 * 60.0, 0});
  EXPECT_NEAR(losses.back(), course.end.loss, 1e-12);
  EXPECT_EQ(losses.front(), truth.start);
}

TEST(RunDynamics, StepsBeforeTheFirstThatCountsLieBehindIt) {
  const std::vector<GradientStep> whole = drawn_run(exact, std::vector<double>(1200, 6000), 1);
  std::vector<GradientStep> odd = whole;
  for (std::size_t i = 0; i < 5; ++i) odd[i].loss *= 1.5;  // a warm-up that no law describes
  const RunFit fit = fitted(odd, 5);
  EXPECT_NEAR(fit.dynamics.exponent / truth.exponent, 1, 0.03);
  EXPECT_NEAR(fit.dynamics.start, truth.start, 0.1);
}

TEST(RunDynamics, TokensToALossThatIsNeverReachedOrIsThereFromTheBeginningAreUnknown) {
  const std::vector<double> batches(50, 6000);
  EXPECT_FALSE(predicted_tokens_to(truth, batches, 0.9));
  EXPECT_FALSE(predicted_tokens_to(truth, batches, 5.1));
  const std::vector<GradientStep> steps = drawn_run(exact, batches, 1);
  EXPECT_FALSE(tokens_to_mean_loss(steps, 5, 0.9));
  EXPECT_FALSE(tokens_to_mean_loss(steps, 5, 5.1));
  EXPECT_FALSE(tokens_to_mean_loss(steps, 51, 3));
}

TEST(RunDynamics, AFloorAboveALossAndTooFewStepsAreRefused) {
  const std::vector<GradientStep> steps = drawn_run(exact, std::vector<double>(40, 6000), 1);
  const MeasuredNoise noise = measured_noise(steps);
  EXPECT_THAT([&] { (void)fit_run(steps, 0, noise, 4.9); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("below every loss")));
  EXPECT_THAT([&] { (void)fit_run(steps, 33, noise, 1); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("eight steps")));
}

}  // namespace

}  // namespace slipway::test
