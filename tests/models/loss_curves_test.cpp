// Curves made with known numbers give these numbers back; what curves do not determine is reported as unknown.
#include "models/fit/loss_curves.h"
#include "models/training/loss_dynamics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "models/training/growth.h"

namespace slipway::test {
namespace {

constexpr double sequence = 1000;
const LossDynamics truth{3.2, 1.6, 400, 0.3, 3e6, 2.9, kaplan_noise_exponent};

// A run step by step (models/training/loss_dynamics.h), sampled 25 times, with a seed's scatter.
LossCurve run_of(const std::string& submission, std::int64_t batch, double scatter, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const double tokens = static_cast<double>(batch) * sequence;
  LossCurve curve{submission, tokens, 1e-4, {}};
  for (int looked = 1; looked <= 25; ++looked) {
    const double steps = std::ceil(80 * looked * 4096.0 / static_cast<double>(batch));
    const Course course = course_of({BatchRule::constant, {batch}, 0, {}, 0, 1, 2}, truth, sequence,
                                    {steps * static_cast<double>(batch), 0});
    curve.points.push_back({steps * tokens, course.end.loss * (1 + scatter * normal(random))});
  }
  return curve;
}

std::vector<LossCurve> curves_of(std::vector<std::int64_t> batches, double scatter) {
  std::vector<LossCurve> curves;
  std::uint64_t seed = 1;
  for (const std::int64_t batch : batches)
    for (const char* who : {"a", "b"}) curves.push_back(run_of(who + std::to_string(batch), batch, scatter, seed++));
  return curves;
}

TEST(LossCurves, MadeWithKnownNumbersGiveTheseBack) {
  const DynamicsFit fit = fit_dynamics(curves_of({512, 2048, 8192}, 0), {truth.floor, kaplan_noise_exponent});
  EXPECT_NEAR(fit.dynamics.start, truth.start, 2e-3);
  EXPECT_NEAR(fit.dynamics.offset / truth.offset, 1, 0.02);
  EXPECT_NEAR(fit.dynamics.exponent / truth.exponent, 1, 0.01);
  EXPECT_NEAR(noise_scale_at(fit.dynamics, truth.noise_loss) / truth.noise_tokens, 1, 0.02);
  EXPECT_LT(fit.error, 1e-4);
}

TEST(LossCurves, TheIntervalOfScatteredCurvesHoldsTheTruth) {
  const DynamicsFit fit = fit_with_intervals(curves_of({512, 2048, 8192}, 3e-4), {truth.floor, kaplan_noise_exponent});
  const double noise_there =
      truth.noise_tokens * std::pow(truth.noise_loss / fit.dynamics.noise_loss, kaplan_noise_exponent);
  const Interval interval = fit.parameters.back().interval.value();
  EXPECT_LT(interval.least, noise_there);
  EXPECT_GT(interval.most, noise_there);
  EXPECT_LT(interval.most / interval.least, 2) << "three batch sizes over a factor of 16 do determine the noise scale";
}

TEST(LossCurves, OfBatchesThatHardlyDifferTheNoiseScaleStaysUnknown) {
  const auto noise_by = [](const std::vector<std::int64_t>& batches) {
    return fit_with_intervals(curves_of(batches, 1e-3), {truth.floor, kaplan_noise_exponent}).parameters.back();
  };
  EXPECT_TRUE(noise_by({512, 8192}).is_known());
  EXPECT_FALSE(noise_by({512, 513}).is_known()) << "the prior alone would give it a value that looks sure";
}

TEST(LossCurves, ALeftOutBatchIsPredictedAndTheGuessThatKnowsNoBatchIsNot) {
  const auto rows =
      leave_one_batch_out(curves_of({512, 2048, 8192}, 1e-4), {truth.floor, kaplan_noise_exponent}, 2.9, 2.9);
  ASSERT_EQ(rows.size(), 3U);
  for (const LeftOutBatch& row : rows) EXPECT_NEAR(row.predicted.value() / row.measured, 1, 0.05) << row.batch_tokens;
  EXPECT_LT(rows[2].constant / rows[2].measured, 0.7) << "8,192,000 tokens a step are above the noise scale";
}

TEST(LossCurves, TokensToALossAreThoseOfTheTrainingStepByStep) {
  for (const std::int64_t batch : {512, 8192}) {
    const Course course = course_of({BatchRule::constant, {batch}, 0, {}, 0, 1, 2}, truth, sequence, {0, 2.8});
    EXPECT_NEAR(tokens_to(truth, static_cast<double>(batch) * sequence, 2.8) / (course.end.samples * sequence), 1,
                0.02);
  }
  EXPECT_TRUE(std::isinf(tokens_to(truth, 1e6, truth.floor)));
}

TEST(LossCurves, TheMeasuredCrossingIsOnTheLineBetweenTwoPoints) {
  const LossCurve curve{"a", 1, 1, {{100, 3}, {200, 2}, {300, 1}}};
  EXPECT_DOUBLE_EQ(*measured_tokens_to(curve, 2.5), 150);
  EXPECT_DOUBLE_EQ(*measured_tokens_to(curve, 2), 200);
  EXPECT_FALSE(measured_tokens_to(curve, 0.5));
}

TEST(LossCurves, LearningRatesThatDifferAreFittedByThemselves) {
  auto curves = curves_of({512, 2048, 8192}, 0);
  EXPECT_THAT(fits_by_learning_rate(curves, {truth.floor}, truth.noise_loss), testing::IsEmpty());
  curves[4].learning_rate = curves[5].learning_rate = 2e-4;
  const auto fits = fits_by_learning_rate(curves, {truth.floor, kaplan_noise_exponent}, truth.noise_loss);
  ASSERT_EQ(fits.size(), 2U);
  EXPECT_EQ(fits[0].batch_sizes, 2U);
  EXPECT_NEAR(fits[0].noise_tokens.value() / truth.noise_tokens, 1, 0.05);
  const Interval interval = fits[0].interval.value();
  EXPECT_LT(interval.least, truth.noise_tokens);
  EXPECT_GT(interval.most, truth.noise_tokens);
  EXPECT_FALSE(fits[1].noise_tokens) << "one batch size determines none";
}

TEST(LossCurves, WhatAPartOfTheCurvesCannotTellIsUnknownAndTheRestIsTold) {
  auto curves = curves_of({512, 2048, 8192}, 0);
  // Without the six points of 8192's one run left, five of the others remain: too few for a fit.
  curves = {curves[0], curves[2], curves[4]};
  curves[0].points.resize(3), curves[1].points.resize(2), curves[2].points.resize(6);
  const CurveAssumptions assumed{truth.floor, kaplan_noise_exponent};
  const DynamicsFit fit = fit_with_intervals(curves, assumed);
  EXPECT_EQ(fit.points, 11U);
  EXPECT_FALSE(fit.parameters.back().interval);
  const double target = curves[1].points[1].loss;
  const auto rows = leave_one_batch_out(curves, assumed, target, truth.noise_loss);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back().batch_tokens, 8192 * sequence);
  EXPECT_FALSE(rows.back().predicted);
  curves[2].learning_rate = 2e-4;
  const auto rates = fits_by_learning_rate(curves, assumed, truth.noise_loss);
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_EQ(rates[0].batch_sizes, 2U);
  EXPECT_EQ(rates[0].points, 5U);
  EXPECT_FALSE(rates[0].noise_tokens);
}

TEST(LossCurves, PointsThatDoNotCountTakeTheirCurvesBatchesAndSubmissionsAlong) {
  const LossCurve early{"a", 1, 1, {{100, 3}, {200, 2}}}, late{"b", 2, 1, {{100, 3}, {300, 1}}};
  const auto kept = curves_after({early, late}, 250);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].submission, "b");
  EXPECT_EQ(kept[0].points.size(), 1U);
  EXPECT_EQ(curves_after({early, late}, 200).size(), 2U) << "a point there counts";
}

TEST(LossCurves, AFitDoesNotHangOnPointsBeforeThoseThatCount) {
  const CurveAssumptions assumed{truth.floor, kaplan_noise_exponent};
  auto curves = curves_of({512, 2048, 8192}, 0);
  const double late = curves[0].points[8].tokens;
  auto bare = curves;  // the same losses without those on the way to them
  for (LossCurve& curve : curves) curve.points[0].loss *= 2;
  EXPECT_EQ(fit_dynamics(curves_after(curves, late), assumed).dynamics.noise_tokens,
            fit_dynamics(curves_after(bare, late), assumed).dynamics.noise_tokens);
  EXPECT_NEAR(
      noise_scale_at(fit_dynamics(curves_after(bare, late), assumed).dynamics, truth.noise_loss) / truth.noise_tokens,
      1, 0.05);
}

TEST(LossCurves, AnAssumedExponentMovesTheNoiseScaleByMoreThanItsIntervalTells) {
  // Curves by a noise scale that grows; assumed to stay, the fit is sure of another one.
  const auto curves = curves_of({512, 2048, 8192}, 1e-4);
  const auto noise_of = [&](double exponent) {
    return fit_with_intervals(curves, {truth.floor, exponent}).parameters.back();
  };
  const FittedDynamic right = noise_of(kaplan_noise_exponent), wrong = noise_of(0);
  EXPECT_GT(std::abs(std::log(wrong.value / right.value)), 0.02);
}

TEST(LossCurves, RefuseWhatCannotBeFitted) {
  const auto curves = curves_of({512, 2048}, 0);
  EXPECT_THROW(fit_dynamics({curves[0], curves[1]}, {1.6}), std::invalid_argument) << "one batch size";
  EXPECT_THROW(fit_dynamics(curves, {3}), std::invalid_argument) << "a floor above the losses";
  EXPECT_THROW(fit_dynamics(curves_after(curves, 1e18), {1.6}), std::invalid_argument) << "no points";
  auto broken = curves;
  broken[0].points[3].loss = std::nan("");
  EXPECT_THROW(fit_dynamics(broken, {1.6}), std::invalid_argument);
  broken = curves;
  std::swap(broken[0].points[3], broken[0].points[4]);
  EXPECT_THROW(fit_dynamics(broken, {1.6}), std::invalid_argument);
  broken = curves;
  broken[0].points[1].loss = 1e300;
  EXPECT_THROW(fit_dynamics(broken, {1.6}), std::invalid_argument) << "no loss in nats";
}

}  // namespace
}  // namespace slipway::test
