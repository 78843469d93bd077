// Who waits how long in a communication: records made from a timeline.
#include "schedules/graph/timeline_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "tests/hand_graph.h"

namespace slipway {
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
  LoweringInput input;
  input.model = llama(
      "small",
      {.layers = 4, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = input.layout.pipeline = input.layout.data = 2;
  input.shape.micro_batch = 1;
  input.shape.sequence = 32;
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
  for (const TraceRecord& record : trace.records) {
    EXPECT_TRUE(keys.emplace(record.step, record.rank, record.label).second) << record.label;
    EXPECT_GE(record.wait_s, 0);
    EXPECT_LE(record.start_s + record.wait_s, record.end_s);
    double& end = lane_end[{record.rank, record.lane, record.group}];
    EXPECT_GE(record.start_s, end) << record.label;
    end = record.end_s;
  }
}

}  // namespace
}  // namespace slipway
