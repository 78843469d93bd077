#include "scenarios/predict/step_times.h"

#include <gmock/gmock.h>

namespace slipway::test {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

TraceRecord compute(int step, int rank, double start, double end) {
  return {step, rank, "compute", "0F" + std::to_string(start), "forward", start, end, 0, 0, 0, -1};
}

// Rank 1 starts one second after rank 0; step 2 of rank 1 is late by 2 s more.
Trace two_ranks() {
  Trace trace;
  trace.ranks = 2;
  trace.steps = 4;
  trace.records = {compute(0, 0, 0, 9),   compute(1, 0, 10, 14), compute(2, 0, 20, 24),
                   compute(3, 0, 30, 34), compute(0, 1, 1, 9),   compute(1, 1, 11, 14),
                   compute(2, 1, 23, 25), compute(3, 1, 31, 34), {2, 0, "tp", "ag", "all-gather", 0, 40, 0, 0, 0, 0}};
  return trace;
}

TEST(StepTimes, ThePeriodIsTheDistanceBetweenStartsOnTheSlowestRankWithoutTheFirstStep) {
  const StepTimes times = step_times(two_ranks());
  EXPECT_EQ(times.first, 1);
  EXPECT_EQ(times.last, 2);
  EXPECT_THAT(times.period_s, ElementsAre(12, 10));
  EXPECT_EQ(times.median_period_s, 11);
}

TEST(StepTimes, IdleIsThePeriodWithoutComputeMeanOverRanks) {
  const StepTimes times = step_times(two_ranks());
  // Step 1: rank 0 10 − 4, rank 1 12 − 3. Step 2: rank 0 10 − 4, rank 1 8 − 2.
  EXPECT_THAT(times.idle_s, ElementsAre(7.5, 6));
  EXPECT_THAT(times.idle_share, DoubleEq((6 + 9 + 6 + 6) / 40.0));
}

TEST(StepTimes, TwoStepsHaveOnePeriodAndOneStepItsSpan) {
  Trace trace = two_ranks();
  trace.steps = 2;
  std::erase_if(trace.records, [](const TraceRecord& record) { return record.step > 1; });
  EXPECT_THAT(step_times(trace).period_s, ElementsAre(10));
  trace.steps = 1;
  std::erase_if(trace.records, [](const TraceRecord& record) { return record.step > 0; });
  EXPECT_THAT(step_times(trace).period_s, ElementsAre(9));
}

// A bubble work of the first step that ran in the second one.
TEST(StepTimes, OfWindowsAreThoseOfTheWindowDividedByItsSteps) {
  Trace trace = two_ranks();
  trace.steps = 6;
  trace.window = 2;
  for (const int rank : {0, 1})
    for (const int step : {4, 5}) trace.records.push_back(compute(step, rank, 10.0 * step + rank, 10.0 * step + 4));
  trace.records.push_back({2, 0, "compute", "0.L0.q.invA", "inversion", 35, 37, 0, 0, 0, -1});
  const StepTimes times = step_times(trace);
  EXPECT_EQ(times.first, 2);
  EXPECT_EQ(times.last, 3);
  // From step 2 to step 4: rank 0 20 s of which 10 are work, rank 1 18 s of which 5 are.
  EXPECT_THAT(times.period_s, ElementsAre(10));
  EXPECT_THAT(times.idle_s, ElementsAre((10.0 + 13) / 2 / 2));
}

TEST(StepTimes, OfATrainingThatEndsWithinAWindowAreThoseOfTheWholeWindows) {
  Trace trace = two_ranks();
  trace.window = 2;
  const StepTimes whole = step_times(trace);
  ASSERT_EQ(trace.steps, 4);
  trace.steps = 5;
  for (const int rank : {0, 1}) trace.records.push_back(compute(4, rank, 40.0 + rank, 44));
  EXPECT_EQ(step_times(trace).last, whole.last);
  EXPECT_EQ(step_times(trace).period_s, whole.period_s);
  trace.steps = 1;
  std::erase_if(trace.records, [](const TraceRecord& record) { return record.step > 0; });
  EXPECT_EQ(step_times(trace).last, 0);
  EXPECT_THAT(step_times(trace).period_s, ElementsAre(9));
}

TEST(StepTimes, AMissingRankIsNamed) {
  Trace trace = two_ranks();
  std::erase_if(trace.records, [](const TraceRecord& record) { return record.rank == 1 && record.step == 3; });
  EXPECT_THAT([&] { step_times(trace); },
              testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr("rank 1 in step 4")));
}

TEST(StepTimes, StepsThatAFileOnlyNamesTakeNoMemory) {
  Trace trace = two_ranks();
  trace.steps = 2'000'000'000;
  EXPECT_THAT([&] { step_times(trace); }, testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr(
                                              "has 9 tasks, too few for 2000000000 steps of 2 ranks")));
}

}  // namespace
}  // namespace slipway::test
