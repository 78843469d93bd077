#include "scenarios/execution/batch_report.h"

#include <gmock/gmock.h>

#include <cmath>

namespace slipway {
namespace {

using testing::HasSubstr;

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
  EXPECT_EQ(batches[0].step_s, 1.0) << "neither the first step, which warms up, nor the last, which ends with the change";
  EXPECT_EQ(batches[1].first, 4);
  EXPECT_EQ(batches[1].step_s, 2.0);
  EXPECT_FALSE(batches[0].noise_scale.has_value());
  const std::string text = batches_text(batches, 64, 0, {{8, 1.5}});
  EXPECT_THAT(text, HasSubstr("8      5 to 9     2.00 s       256     1.50 s  25.0 %"));
  EXPECT_THAT(text, HasSubstr("4      1 to 4     1.00 s       256          -       -"));
}

// B = b·Σ Var / Σ(‖g‖² − Var): of expected norms (models/norm_test.h) it is the noise scale that they were made of.
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
  EXPECT_THAT(batches_text(batches, 64, 0, {}), HasSubstr("20 sequences"));
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
}  // namespace slipway
