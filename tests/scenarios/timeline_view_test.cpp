// The view of a step that pages show: causes, exposed communication, the critical path, identical ranks once, reduction.
#include "scenarios/report/timeline_view.h"
#include "scenarios/report/timeline_reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/simulated_step.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

TraceRecord task(int rank, const std::string& lane, const std::string& label, const std::string& kind, double start,
                 double end, double wait = 0, int group = -1) {
  TraceRecord record;
  record.rank = rank, record.lane = lane, record.label = label, record.kind = kind;
  record.start_s = start, record.end_s = end, record.wait_s = wait, record.group = group;
  return record;
}

// Rank 0 computes and sends, rank 1 waits for it and computes:
//
//   rank 0  ██ a ██                            0..4
//   send            ▓▓▓▓                       4..6, rank 1 has waited since 1
//   rank 1  █ x █            ███ b ███         0..1 and 6..9
Trace two_ranks() {
  Trace trace;
  trace.ranks = 2, trace.steps = 1;
  trace.records = {task(0, "compute", "a", "forward", 0, 4), task(0, "pp", "a.send", "transfer", 4, 6, 0, 0),
                   task(1, "compute", "x", "optimizer", 0, 1), task(1, "compute", "b", "forward", 6, 9),
                   task(1, "pp", "a.send", "transfer", 1, 6, 3, 0)};
  return trace;
}

const TaskSpan& span_called(const TimelineView& view, std::size_t row, const std::string& label) {
  for (const LaneView& lane : view.rows.at(row).lanes)
    for (const std::uint32_t i : lane.spans)
      if (view.labels[view.spans[i].label] == label) return view.spans[i];
  throw std::logic_error("no span is called " + label);
}

std::string cause_of(const TimelineView& view, const TaskSpan& span) {
  return span.cause < 0 ? "none" : view.labels[view.spans[static_cast<std::size_t>(span.cause)].label];
}

TEST(TimelineView, ATaskWaitedForWhatEndedLastBeforeItAndACommunicationForItsLastMember) {
  const TimelineView view = view_of(two_ranks(), 0);
  ASSERT_EQ(view.rows.size(), 2U);
  EXPECT_EQ(cause_of(view, span_called(view, 0, "a")), "none");
  EXPECT_EQ(cause_of(view, span_called(view, 1, "b")), "a.send");
  EXPECT_EQ(cause_of(view, span_called(view, 1, "a.send")), "a") << "and not x, which ended before rank 1 waited";
}

TEST(TimelineView, TheCriticalPathLeadsThroughTheTransferAndFillsTheStep) {
  const TimelineView view = view_of(two_ranks(), 0);
  EXPECT_DOUBLE_EQ(view.seconds, 9);
  for (const char* label : {"a.send", "b"}) EXPECT_TRUE(span_called(view, 1, label).critical) << label;
  EXPECT_TRUE(span_called(view, 0, "a").critical);
  EXPECT_FALSE(span_called(view, 1, "x").critical);
  double sum = 0;
  for (const PathShare& share : view.path) sum += share.seconds;
  EXPECT_DOUBLE_EQ(sum, 9);
  ASSERT_EQ(view.path.size(), 2U);
  EXPECT_EQ(view.path[0].name, "forward");
  EXPECT_DOUBLE_EQ(view.path[0].seconds, 7);
  EXPECT_EQ(view.path[1].name, "pp transfer");
  EXPECT_DOUBLE_EQ(view.path[1].seconds, 2);
}

TEST(TimelineView, IdleTimeIsExposedOnlyWhileTheCommunicationRuns) {
  const TimelineView view = view_of(two_ranks(), 0);
  EXPECT_TRUE(view.rows[0].exposed.empty());
  ASSERT_EQ(view.rows[1].exposed.size(), 1U);
  EXPECT_DOUBLE_EQ(view.rows[1].exposed[0].start_s, 4) << "from 1 to 4 rank 1 waits for rank 0: bubble";
  EXPECT_DOUBLE_EQ(view.rows[1].exposed[0].end_s, 6);
  EXPECT_THAT(exposed_by_axis(view), testing::ElementsAre(testing::Pair("pp", 1.0))) << "mean over two ranks";
}

TEST(TimelineView, AReceiverThatWaitsBeforeTheFirstWorkDoesNotLengthenTheStep) {
  Trace trace = two_ranks();
  for (TraceRecord& record : trace.records) record.start_s += 10, record.end_s += 10;
  trace.records.back().start_s = 2, trace.records.back().wait_s = 12;  // since the step before
  const TimelineView view = view_of(trace, 0);
  EXPECT_DOUBLE_EQ(view.seconds, 9);
  EXPECT_DOUBLE_EQ(span_called(view, 1, "a.send").start_s, 0);
  EXPECT_DOUBLE_EQ(span_called(view, 1, "a.send").wait_s, 4);
}

TEST(TimelineView, IdenticalRanksAreStoredOnceAndCausesStayInTheView) {
  Trace trace;
  trace.ranks = 6, trace.steps = 1;
  for (int rank = 0; rank < 6; ++rank) {
    const double late = rank == 4 ? 0.5 : 0;
    trace.records.push_back(task(rank, "compute", "f", "forward", 0, 1 + late));
    trace.records.push_back(task(rank, "compute", "b", "backward", 1 + late, 3));
  }
  const TimelineView view = view_of(trace, 0);
  ASSERT_EQ(view.rows.size(), 2U);
  EXPECT_THAT(view.rows[0].ranks, testing::ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(view.rows[1].ranks, testing::ElementsAre(4));
  EXPECT_EQ(view.spans.size(), 4U);
  for (const TaskSpan& span : view.spans) EXPECT_LT(span.cause, 4);
}

TEST(TimelineView, OnlyTheTasksOfItsStepAreInIt) {
  Trace trace = two_ranks();
  trace.steps = 2;
  for (TraceRecord record : two_ranks().records) {
    record.step = 1, record.start_s += 9, record.end_s += 9;
    trace.records.push_back(record);
  }
  EXPECT_EQ(view_of(trace, 0).spans.size(), 5U);
  EXPECT_EQ(view_of(trace, 1).spans.size(), 5U);
  EXPECT_DOUBLE_EQ(view_of(trace, 1).seconds, 9);
}

TEST(TimelineView, TheTypicalStepHasTheMedianPeriodOfAllButTheFirstAndTheLast) {
  Trace trace;
  trace.ranks = 1, trace.steps = 6;
  const std::vector<double> starts{0, 100, 103, 104, 106, 200};  // periods 100, 3, 1, 2, 94 and the last
  for (int step = 0; step < 6; ++step) {
    trace.records.push_back(task(0, "compute", "f", "forward", starts[static_cast<std::size_t>(step)],
                                 starts[static_cast<std::size_t>(step)] + 0.5));
    trace.records.back().step = step;
  }
  EXPECT_EQ(typical_step(trace), 3) << "of 3, 1, 2 and 94 seconds the lower middle one is 2, of step 3";
}

// A lane of many tasks, of which some are critical.
TimelineView long_view(int ranks, int tasks) {
  Trace trace;
  trace.ranks = ranks, trace.steps = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    double at = 0;
    for (int i = 0; i < tasks; ++i) {
      const double length = 1e-3 * (1 + (i * 7 + rank * 3) % 5);
      trace.records.push_back(
          task(rank, "compute", std::to_string(i) + "F0", i % 3 == 0 ? "backward" : "forward", at, at + length));
      at += length + (i % 10 == 0 ? 1e-4 : 0);
    }
  }
  return view_of(trace, 0);
}

double busy(const TimelineView& view) {
  return std::accumulate(view.spans.begin(), view.spans.end(), 0.0,
                         [](double sum, const TaskSpan& span) { return sum + span.busy_s; });
}

TEST(Reduction, KeepsTheSecondsOfTheWorkAndTheNumberOfTasks) {
  const TimelineView view = long_view(4, 5000);
  const TimelineView small = reduced(view, 9000);
  EXPECT_LE(small.spans.size(), 9000U);
  EXPECT_GT(small.spans.size(), 2000U);
  EXPECT_NEAR(busy(small), busy(view), 1e-9 * busy(view));
  std::uint64_t tasks = 0;
  for (const TaskSpan& span : small.spans) tasks += span.tasks;
  EXPECT_EQ(tasks, view.spans.size());
}

TEST(Reduction, KeepsEveryTaskOfTheCriticalPathAlone) {
  const TimelineView view = long_view(4, 5000);
  const TimelineView small = reduced(view, 9000);
  const auto critical = [](const TimelineView& of) {
    return std::ranges::count_if(of.spans, [](const TaskSpan& span) { return span.critical; });
  };
  EXPECT_GT(critical(view), 1000);
  EXPECT_EQ(critical(small), critical(view));
  for (const TaskSpan& span : small.spans) EXPECT_TRUE(!span.critical || span.tasks == 1);
}

// One rank alone: every task is critical.
TEST(Reduction, JoinsTasksOfTheCriticalPathWhereThePageCouldNotHoldThem) {
  const TimelineView view = long_view(1, 20'000);
  const TimelineView small = reduced(view, 3000);
  EXPECT_LE(small.spans.size(), 3000U);
  EXPECT_NEAR(busy(small), busy(view), 1e-9 * busy(view));
  for (const TaskSpan& span : small.spans) EXPECT_TRUE(span.critical);
}

TEST(Reduction, KeepsTheSecondsOfExposedCommunication) {
  Trace trace;
  trace.ranks = 1, trace.steps = 1;
  for (int i = 0; i < 4000; ++i) {
    trace.records.push_back(task(0, "compute", std::to_string(i) + "F0", "forward", 3 * i, 3 * i + 1));
    trace.records.push_back(task(0, "tp", std::to_string(i) + "F0.ar", "all-reduce", 3 * i + 1, 3 * i + 3, 0, 0));
  }
  const TimelineView view = view_of(trace, 0), small = reduced(view, 2000);
  const auto exposed = [](const TimelineView& of) {
    double seconds = 0;
    for (const auto& [axis, each] : exposed_by_axis(of)) seconds += each;
    return seconds;
  };
  EXPECT_DOUBLE_EQ(exposed(view), 3999 * 2) << "the last one has no task behind it";
  EXPECT_NEAR(exposed(small), exposed(view), 1e-9 * exposed(view));
  EXPECT_LE(small.spans.size() + small.rows[0].exposed.size(), 2000U);
}

TEST(Reduction, KeepsThePeakOfTheMemory) {
  std::vector<MemoryPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({1e-5 * i, i == 77'777 ? 9.0 : 1.0 + i % 7});
  const std::vector<MemoryPoint> kept = thinned(points, 1);
  EXPECT_LE(kept.size(), 1100U);
  EXPECT_EQ(std::ranges::max_element(kept, {}, &MemoryPoint::bytes)->bytes, 9);
}

TEST(Reduction, KeepsTheOrderOfLanesAndNumbersOfCausesThatExist) {
  const TimelineView small = reduced(long_view(3, 4000), 6000);
  for (const RankView& row : small.rows)
    for (const LaneView& lane : row.lanes)
      for (std::size_t i = 1; i < lane.spans.size(); ++i) {
        EXPECT_GE(small.spans[lane.spans[i]].start_s, small.spans[lane.spans[i - 1]].start_s);
        EXPECT_LT(small.spans[lane.spans[i]].cause, static_cast<std::int32_t>(small.spans.size()));
      }
}

TEST(Reduction, LeavesAViewAloneThatIsSmallEnough) {
  const TimelineView view = long_view(2, 100);
  EXPECT_EQ(reduced(view, 200).spans.size(), 200U);
}

SimulatedStep simulated_example(const std::vector<std::string>& overrides) {
  const LoadResult loaded = load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml", overrides);
  if (!loaded.errors.empty()) throw std::logic_error("the example cannot be loaded");
  StepOptions whole;
  whole.periodic = false;
  return simulated_step(loaded.scenario, whole);
}

// A forward of a later stage needs what the transfer brings. Its lane may be what it waited for, and never anything else.
TEST(TimelineView, ASimulatedTaskWaitedForWhatItsGraphSays) {
  const SimulatedStep step = simulated_example(
      {"layout.tensor=1", "layout.sequence_parallel=false", "layout.data=16", "schedule.global_batch=128"});
  const TimelineView view = view_of(step.prepared.graph, step.simulation.timeline);
  EXPECT_FALSE(view.causes_by_dates);
  const TaskSpan& last = span_called(view, 3, "3F0");
  EXPECT_EQ(cause_of(view, last), "2F0.send");
  EXPECT_EQ(last.wait_for, Wait::input);
  const TaskSpan& backward = span_called(view, 3, "3B0");
  EXPECT_EQ(cause_of(view, backward), "3F0");
  for (const RankView& row : view.rows)
    for (const LaneView& lane : row.lanes)
      for (const std::uint32_t i : lane.spans) {
        const TaskSpan& span = view.spans[i];
        if (span.cause < 0) continue;
        EXPECT_LE(view.spans[static_cast<std::size_t>(span.cause)].end_s, span.start_s + span.wait_s + 1e-9);
      }
}

TEST(TimelineView, ATraceOfAFileSaysThatItsCausesAreJudgedByDates) {
  const TimelineView view = view_of(two_ranks(), 0);
  EXPECT_TRUE(view.causes_by_dates);
  EXPECT_EQ(span_called(view, 1, "b").wait_for, Wait::by_dates);
}

// The accounting of a simulated step (schedules/time/metrics.cpp) follows the graph's own edges.
TEST(TimelineView, ItsExposedCommunicationIsThatOfTheMetricsWhichFollowTheGraph) {
  for (const std::vector<std::string>& overrides :
       std::vector<std::vector<std::string>>{{},
                                             {"layout.tensor=4", "layout.data=4"},
                                             {"layout.pipeline=1", "layout.data=8"},
                                             {"layout.pipeline=8", "layout.data=1"}}) {
    const SimulatedStep step = simulated_example(overrides);
    const StepMetrics metrics = metrics_of(step.prepared.graph, step.simulation.timeline, 0);
    const TimelineView view = view_of(step.prepared.graph, step.simulation.timeline);
    double exposed = 0;
    for (const auto& [axis, seconds] : exposed_by_axis(view)) exposed += seconds;
    EXPECT_NEAR(exposed, metrics.exposed_comm_s, 0.05 * metrics.step_time_s);
    EXPECT_EQ(view.ranks, 64);
    std::size_t ranks = 0;
    for (const RankView& row : view.rows) ranks += row.ranks.size();
    EXPECT_EQ(ranks, 64U);
  }
}

}  // namespace
}  // namespace slipway::test
