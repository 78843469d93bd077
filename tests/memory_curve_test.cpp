// A rank's memory over time, as the records of a predicted trace have it.
#include "schedules/graph/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "schedules/graph/lowering.h"
#include "schedules/graph/memory_timeline.h"
#include "schedules/graph/timeline_trace.h"
#include "tests/tiny_runs.h"

namespace slipway {
namespace {

struct Planned {
  TaskGraph graph;
  Timeline timeline;
};
Planned planned(LoweringInput input, int steps = 1) {
  input.shape.sharding = sharding_of(input.layout);
  Planned made{lower(input), {}};
  Durations durations(made.graph.tasks.size());
  for (TaskId id = 0; id < made.graph.tasks.size(); ++id)
    durations[id] = made.graph.tasks[id].communicator == none ? 1e-3 : 1e-5;
  set_global_order(made.graph, durations);
  made.timeline = replay(made.graph, durations, steps);
  return made;
}

// Two tasks of a second each on one rank: 100 bytes from the first to the end of the second, 30 of the second alone.
TEST(MemoryCurve, GivesBackWhatEndsBeforeItTakesWhatStartsAndTellsTheMostMeanwhile) {
  TaskGraph graph;
  graph.works.resize(1);
  graph.tasks = {{TaskKind::compute, 0, none, 0, 0, 0}, {TaskKind::compute, 0, none, 0, 0, 0}, {TaskKind::compute, 0, none, 0, 0, 0}};
  graph.buffers = {{BufferKind::saved, 0, 0, 100, 0}, {BufferKind::saved, 0, 0, 30, 1}, {BufferKind::saved, 0, 0, 7, 2}};
  graph.inputs = {{0, 0, 1, 1}, {0}};  // the second task reads the first buffer
  graph.outputs = {{0, 1, 2, 3}, {0, 1, 2}};
  graph.static_bytes = {{1000, 0, 0}};
  const Timeline timeline{{0, 1, 2}, {1, 2, 3}, 1};
  const BufferLives lives(graph, timeline);
  const Rows rows = lives.by_rank();
  const MemoryCurve curve(graph, lives, rows[0], 1000);
  const auto expect = [&](double start, double end, double at_end, double most) {
    const MemoryCurve::Use use = curve.during(start, end);
    EXPECT_EQ(use.at_end, at_end) << start << " to " << end;
    EXPECT_EQ(use.most, most) << start << " to " << end;
  };
  expect(0, 1, 1100, 1100);
  expect(1, 2, 1000, 1130);  // both are over, and what the third takes is not there yet
  expect(2, 3, 1000, 1007);
  expect(0.5, 1.5, 1130, 1130);
  expect(-1, -0.5, 1000, 1000);
}

// What the rank's peak says in the header, the records say task by task.
TEST(MemoryCurve, OfATraceHasThePeakOfTheTimeline) {
  std::vector<LoweringInput> inputs{with_layout(tiny_llama(4, false), {.tensor = 2, .pipeline = 2, .sequence_parallel = true}),
                                    with_layout(tiny_llama(4, true), {.data = 2, .zero = 3}),
                                    with_layout(tiny_llama(4, false), {.pipeline = 2, .data = 2, .zero = 2})};
  inputs.front().recompute = Recompute::full;
  inputs.back().schedule = "zb-h1";
  for (const LoweringInput& input : inputs) {
    const Planned made = planned(input);
    const std::vector<RankMemory> expected = memory_timeline(made.graph, made.timeline);
    std::map<int, double> most;
    for (const TraceRecord& record : trace_of(made.graph, made.timeline, "replay").records) {
      EXPECT_LE(record.memory_bytes, record.memory_peak_bytes) << record.label;
      double& peak = most[record.rank];
      peak = std::max(peak, record.memory_peak_bytes);
    }
    ASSERT_EQ(most.size(), expected.size());
    for (std::size_t rank = 0; rank < expected.size(); ++rank)
      EXPECT_DOUBLE_EQ(most[static_cast<int>(rank)], expected[rank].peak) << input.schedule << ", rank " << rank;
  }
}

// 1F1B: the first stage holds one micro-batch more after each of its warm-up forwards, and none when the step is over.
TEST(MemoryCurve, GrowsWithEachForwardOfTheWarmUpAndIsBackAtTheEndOfEveryStep) {
  const Planned made = planned(with_layout(tiny_llama(4, false), {.pipeline = 4}), 2);
  const StaticBytes& fixed = made.graph.static_bytes.front();
  const double held = fixed.weights + fixed.gradients + fixed.optimizer;
  std::map<std::string, double> first, second;
  for (const TraceRecord& record : trace_of(made.graph, made.timeline, "replay").records)
    if (record.rank == 0) (record.step == 0 ? first : second)[record.label] = record.memory_bytes;
  const double one = first.at("0F0") - held;
  EXPECT_GT(one, 0);
  for (int micro_batch = 1; micro_batch < 4; ++micro_batch)
    EXPECT_GT(first.at("0F" + std::to_string(micro_batch)), held + 0.9 * one * (micro_batch + 1)) << micro_batch;
  EXPECT_DOUBLE_EQ(first.at("0.opt"), held);
  for (const auto& [label, bytes] : first) EXPECT_DOUBLE_EQ(second.at(label), bytes) << label;
}

}  // namespace
}  // namespace slipway
