#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "scenarios/commands/compare/batch_report.h"
#include "scenarios/commands/execute/confirmation.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

std::string batches_text(const std::vector<BatchMeasured>& batches, const std::map<std::int64_t, double>& predicted_s) {
  constexpr double sequence = 64;
  return aligned_table(batch_keys().table(batch_rows(batches, sequence, 0, predicted_s)));
}

// One rank, whose steps begin at these seconds.
Trace trace_of(const std::vector<double>& starts, const std::vector<std::int64_t>& batches) {
  Trace trace;
  trace.ranks = 1;
  trace.steps = static_cast<int>(starts.size());
  std::int64_t samples = 0;
  for (std::size_t step = 0; step < starts.size(); ++step) {
    TraceRecord record;
    record.step = static_cast<int>(step);
    record.kind = "forward";
    record.start_s = starts[step];
    record.end_s = starts[step] + 0.1;
    trace.records.push_back(record);
    samples += batches[step];
    trace.losses.push_back({static_cast<int>(step), samples, 5.0, 0.1, batches[step]});
  }
  return trace;
}

TEST(BatchReport, AStepIsTimedWhereAnotherOfItsBatchFollows) {
  const Trace trace = trace_of({0, 5, 6, 7, 20, 22, 24, 26, 30}, {4, 4, 4, 4, 8, 8, 8, 8, 8});
  const auto batches = batches_of(trace, step_times(trace));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].batch, 4);
  EXPECT_EQ(batches[0].last, 3);
  EXPECT_EQ(batches[0].step_s, 1.0)
      << "neither the first step, which warms up, nor the last, which ends with the change";
  EXPECT_EQ(batches[1].first, 4);
  EXPECT_EQ(batches[1].step_s, 2.0);
  EXPECT_FALSE(batches[0].noise_scale.has_value());
  const std::string text = batches_text(batches, {{8, 1.5}});
  EXPECT_THAT(text, HasSubstr("8      5 to 9     2.00 s       256     1.50 s  25.0 %"));
  EXPECT_THAT(text, HasSubstr("4      1 to 4     1.00 s       256          -       -"));
}

// B = b·Σ Var / Σ(‖g‖² − Var): for expected norms (models/training/norm_test.h) it is the noise scale that made them.
TEST(BatchReport, TheNoiseScaleIsThatOfTheNormsOfAllStepsTogether) {
  Trace trace = trace_of({0, 1, 2, 3}, {8, 8, 8, 8});
  for (std::size_t i = 0; i < 4; ++i) {
    const double length = static_cast<double>(i + 1), noise = 20.0 / 8;  // the gradient's own square, and its noise
    trace.losses[i].gradient_square = length * (1 + noise);
    trace.losses[i].gradient_variance = length * noise;
  }
  const auto batches = batches_of(trace, step_times(trace));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_DOUBLE_EQ(batches[0].noise_scale.value(), 20);
  EXPECT_THAT(batches_text(batches, {}), HasSubstr("20 sequences"));
  for (LossPoint& point : trace.losses) point.gradient_variance = 2 * point.gradient_square.value();
  EXPECT_TRUE(std::isinf(batches_of(trace, step_times(trace))[0].noise_scale.value()));
}

TEST(BatchReport, TheStepsOfABatchAreATraceOfTheirOwn) {
  const Trace trace = trace_of({0, 5, 6, 7, 20, 22}, {4, 4, 8, 8, 8, 16});
  EXPECT_EQ(batches_in(trace), (std::vector<std::int64_t>{4, 8, 16}));
  const Trace part = steps_of_batch(trace, 8);
  EXPECT_EQ(part.steps, 3);
  ASSERT_EQ(part.records.size(), 3u);
  EXPECT_EQ(part.records[0].step, 0);
  EXPECT_EQ(part.records[0].start_s, 6);
  EXPECT_EQ(steps_before(part), 2) << "people read steps of the training";
  try {
    steps_of_batch(trace, 5);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("through 4, 8, 16, and was never 5"));
  }
}

TEST(BatchReport, ARunWhoseBatchStayedHasNone) {
  Trace trace = trace_of({0, 1, 2}, {8, 8, 8});
  for (LossPoint& point : trace.losses) point.batch.reset();
  EXPECT_TRUE(batches_of(trace, step_times(trace)).empty());
}

}  // namespace

// Predictions against measurements beside them, by hand.

namespace {

using testing::HasSubstr;

TEST(Confirmation, BothPredictionsStartFromTheBaselinesMedianStep) {
  const Confirmation result = confirmation_of({"base", 2.0, {4.4, 3.6, 4.0}, 10}, {{"wide", 3.0, {5.0, 7.0}, 20}});
  ASSERT_EQ(result.cases.size(), 1u);
  EXPECT_DOUBLE_EQ(result.baseline_measured_s, 4.0);
  EXPECT_DOUBLE_EQ(result.cases[0].simulated_s, 3.0);
  EXPECT_DOUBLE_EQ(result.cases[0].predicted_s, 6.0);  // 4 × 3/2
  EXPECT_DOUBLE_EQ(result.cases[0].scaled_s, 8.0);     // 4 × 20/10
  EXPECT_DOUBLE_EQ(result.cases[0].measured_s, 6.0);   // the mean of two
}

TEST(Confirmation, AMachineThatIsTwiceAsSlowNowChangesNoPredictedError) {
  const RunCase baseline{"base", 1.0, {2.0}, 1};
  const Confirmation result = confirmation_of(baseline, {{"a", 1.5, {3.0}, 1}, {"b", 0.5, {1.1}, 1}});
  EXPECT_DOUBLE_EQ(result.cases[0].predicted_s, result.cases[0].measured_s);
  EXPECT_THAT(confirmation_text("base", result), HasSubstr("predicted = simulated × 2.000"));
}

TEST(Confirmation, TheLastLineIsTheMedianCasesOwn) {
  const RunCase baseline{"base", 1.0, {1.0}, 1};
  // Off by 50, 10, 0 and 20 %: the middle two are b and d, the larger one is d.
  const std::string text = confirmation_text(
      "base", confirmation_of(
                  baseline, {{"a", 1.5, {1.0}, 1}, {"b", 1.1, {1.0}, 1}, {"c", 1.0, {1.0}, 1}, {"d", 0.8, {1.0}, 1}}));
  EXPECT_TRUE(text.ends_with("predicted 0.800 s, measured 1.000 s, off by 20.0 %\n")) << text;
  EXPECT_THAT(text, HasSubstr("Median error over 4 unseen cases, the larger of the middle two: 20.0 %, of \"d\""));
}

TEST(Confirmation, SaysWhichMeasurementsLieWithinTheIntervalOfTheirPrediction) {
  const double twentieth = std::log(1.2);
  const Confirmation result =
      confirmation_of({"base", 1.0, {2.0}, 1}, {{"near", 1.5, {3.5}, 1, twentieth}, {"far", 1.5, {3.7}, 1, twentieth}});
  EXPECT_NEAR(*result.cases[0].low_s, 2.5, 1e-12);
  EXPECT_NEAR(*result.cases[0].high_s, 3.6, 1e-12);
  EXPECT_TRUE(*result.cases[0].inside());
  EXPECT_FALSE(*result.cases[1].inside());
  const std::string text = confirmation_text("base", result);
  EXPECT_THAT(text, HasSubstr("1 of 2 within their 90 % interval."));
  EXPECT_THAT(text, HasSubstr("2.500 to 3.600 s, outside"));
  const Confirmation none = confirmation_of({"base", 1.0, {2.0}, 1}, {{"near", 1.5, {3.5}, 1}});
  EXPECT_FALSE(none.cases[0].inside());
  EXPECT_THAT(confirmation_text("base", none), testing::Not(HasSubstr("interval")));
}

TEST(Confirmation, TheRangeOfTheRoundsIsToldBesideTheirMedianAndOfOneRoundNothingIs) {
  const Confirmation three = confirmation_of({"base", 1.0, {1.0, 1.2, 0.9}, 1}, {{"a", 1.0, {2.0, 1.0, 1.9}, 1}});
  EXPECT_DOUBLE_EQ(three.baseline_spread.value(), 0.15);       // (1.2 - 0.9) / 2 / 1.0
  EXPECT_DOUBLE_EQ(three.cases[0].spread.value(), 0.5 / 1.9);  // (2 - 1) / 2 / 1.9
  const std::string text = confirmation_text("base", three);
  EXPECT_THAT(text, HasSubstr("1.900 s ± 26 %"));
  EXPECT_THAT(text, HasSubstr("1.000 s ± 15 % (simulated"));
  EXPECT_THAT(text, HasSubstr("median of 3 rounds"));
  const Confirmation once = confirmation_of({"base", 1.0, {1.0}, 1}, {{"a", 1.0, {2.0}, 1}});
  EXPECT_FALSE(once.baseline_spread.has_value());
  EXPECT_THAT(confirmation_text("base", once), testing::Not(HasSubstr("±")));
  EXPECT_TRUE(nlohmann::json::parse(confirmation_json("base", once))["cases"][0]["spread"].is_null());
}

}  // namespace

}  // namespace slipway::test
