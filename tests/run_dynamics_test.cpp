// A run with known numbers gives them back, and what a fit to one batch says of another is what that one does.
#include "models/fit/run_dynamics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "models/growth.h"
#include "tests/drawn_runs.h"

namespace slipway {
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
    for (std::size_t i = 0; i < other.size(); i += 50) EXPECT_NEAR(predicted[i] / other[i].loss, 1, 0.01) << batch << ' ' << i;
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
  EXPECT_THAT([&] { (void)fit_run(steps, 0, noise, 4.9); }, ThrowsMessage<std::invalid_argument>(HasSubstr("below every loss")));
  EXPECT_THAT([&] { (void)fit_run(steps, 33, noise, 1); }, ThrowsMessage<std::invalid_argument>(HasSubstr("eight steps")));
}

}  // namespace
}  // namespace slipway
