// Each member's waiting in a communication, in records made from a timeline.
#include "schedules/draw/timeline_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

const TraceRecord& record_of(const Trace& trace, int step, int rank, const std::string& label) {
  for (const TraceRecord& record : trace.records)
    if (record.step == step && record.rank == rank && record.label == label) return record;
  throw std::out_of_range(label);
}

TEST(TimelineTrace, AMemberWaitsFromItsOwnReadinessToTheCommonStart) {
  HandGraph hand(3);
  const TaskId slow = hand.compute(0, 3);
  const TaskId fast = hand.compute(1, 1);
  hand.collective(Collective::all_reduce, {0, 1, 2}, 100, 0.5, {slow, fast});
  hand.finish();
  const Trace trace = trace_of(hand.graph, replay(hand.graph, hand.durations), "replay");
  EXPECT_EQ(trace.ranks, 3);
  EXPECT_EQ(trace.records.size(), 5U);
  const double own[] = {3, 1, 0};
  for (int rank = 0; rank < 3; ++rank) {
    const TraceRecord& record = record_of(trace, 0, rank, "t2");
    EXPECT_DOUBLE_EQ(record.start_s, own[rank]);
    EXPECT_DOUBLE_EQ(record.wait_s, 3 - own[rank]);
    EXPECT_DOUBLE_EQ(record.end_s, 3.5);
    EXPECT_DOUBLE_EQ(work_seconds(record), 0.5);
    EXPECT_EQ(record.kind, "all-reduce");
    EXPECT_EQ(record.bytes, 100);
  }
}

TEST(TimelineTrace, AReceiverWaitsFromTheEndOfItsLastReceive) {
  HandGraph hand(2);
  const TaskId first = hand.compute(0, 1), second = hand.compute(0, 1);
  hand.transfer(0, 1, 10, {first});
  hand.transfer(0, 1, 10, {second});
  hand.durations[2] = hand.durations[3] = 0.25;
  hand.finish();
  const Trace trace = trace_of(hand.graph, replay(hand.graph, hand.durations), "replay");
  EXPECT_DOUBLE_EQ(record_of(trace, 0, 1, "t3").start_s, 1.25);
  EXPECT_DOUBLE_EQ(record_of(trace, 0, 1, "t3").wait_s, 0.75);
  EXPECT_DOUBLE_EQ(record_of(trace, 0, 0, "t3").start_s, 2);
  EXPECT_DOUBLE_EQ(record_of(trace, 0, 0, "t3").wait_s, 0);
}

TEST(TimelineTrace, InputsOfThePreviousStepCountToo) {
  // The all-reduce of step 1 needs rank 0's late task of step 0; rank 1 waits, rank 0 does not.
  HandGraph hand(2);
  hand.collective(Collective::all_reduce, {0, 1}, 100, 1);
  const TaskId late = hand.compute(0, 5);
  hand.graph.carried = {{late, 0}};
  hand.finish();
  const Trace trace = trace_of(hand.graph, replay(hand.graph, hand.durations, 2), "replay");
  EXPECT_DOUBLE_EQ(record_of(trace, 1, 0, "t0").start_s, 5);
  EXPECT_DOUBLE_EQ(record_of(trace, 1, 0, "t0").wait_s, 0);
  EXPECT_DOUBLE_EQ(record_of(trace, 1, 1, "t0").start_s, 1);
  EXPECT_DOUBLE_EQ(record_of(trace, 1, 1, "t0").wait_s, 4);
}

TEST(TimelineTrace, HasOneRecordPerStepRankAndTaskWhoseLanesNeverOverlap) {
  Step input;
  input.model =
      llama("small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = input.layout.pipeline = input.layout.data = 2;
  input.micro_batch = 1;
  input.global_batch = 8;
  TaskGraph graph = lower(input);
  Durations durations(graph.tasks.size());
  for (TaskId id = 0; id < durations.size(); ++id) durations[id] = 0.001 * (1 + id % 7);
  set_global_order(graph, durations);
  const Trace trace = trace_of(graph, replay(graph, durations, 2), "replay");
  std::set<std::tuple<int, int, std::string>> keys;
  std::map<std::tuple<int, std::string, int>, double> lane_end;
  std::size_t expected = 0;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) expected += 2 * members_of(graph, id).size();
  EXPECT_EQ(trace.records.size(), expected);
  std::map<std::pair<std::string, int>, double> seconds_of;  // by label and rank
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const int rank : members_of(graph, id)) seconds_of[{label_of(graph, id), rank}] = durations[id];
  std::map<std::tuple<int, std::string, int>, double> least_wait;  // by step, label and group
  for (const TraceRecord& record : trace.records) {
    EXPECT_TRUE(keys.emplace(record.step, record.rank, record.label).second) << record.label;
    EXPECT_NEAR(work_seconds(record), seconds_of.at({record.label, record.rank}), 1e-12) << record.label;
    const auto at = least_wait.try_emplace({record.step, record.label, record.group}, record.wait_s).first;
    at->second = std::min(at->second, record.wait_s);
    double& end = lane_end[{record.rank, record.lane, record.group}];
    EXPECT_GE(record.start_s, end) << record.label;
    end = record.end_s;
  }
  for (const auto& [key, wait_s] : least_wait) EXPECT_EQ(wait_s, 0) << std::get<1>(key) << ": all wait, for nobody";
}

// 1F1B of m micro-batches on two ranks, forward f, backward b, messages that take no time. A receiver only waits, from
// 0 to the last message. That is until f + (m−1)(f+b) for the forwards, when rank 0 has done all of them, and until f +
// m(f+b) for the backwards, when rank 1 has. Senders never wait.
TEST(TimelineTrace, AReceiverOfAPipelineWaitsUntilTheLastMessageInAll) {
  constexpr double f = 1, b = 2;
  constexpr int m = 5;
  Step input;
  input.model =
      llama("small", {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.pipeline = 2;
  input.global_batch = m;
  TaskGraph graph = lower(input);
  Durations durations(graph.tasks.size());
  for (TaskId id = 0; id < durations.size(); ++id) {
    const std::string kind = kind_of(graph, id);
    durations[id] = kind == "forward" ? f : kind == "backward" ? b : 0;
  }
  set_global_order(graph, durations);
  std::map<std::pair<int, std::string>, double> waited;  // by rank and lane
  for (const TraceRecord& record : trace_of(graph, replay(graph, durations), "replay").records)
    waited[{record.rank, record.lane}] += record.wait_s;
  EXPECT_DOUBLE_EQ((waited[{1, "pp.forward.0-1"}]), f + (m - 1) * (f + b));
  EXPECT_DOUBLE_EQ((waited[{0, "pp.backward.1-0"}]), f + m * (f + b));
  EXPECT_DOUBLE_EQ((waited[{0, "pp.forward.0-1"}]), 0);
  EXPECT_DOUBLE_EQ((waited[{1, "pp.backward.1-0"}]), 0);
}

}  // namespace
}  // namespace slipway::test
