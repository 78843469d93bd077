// Every schedule of the catalogue over a grid of shapes: its graph keeps the invariants I1 to I9, and takes, without
// communication, the time of the tests' own list replay and holds what that counted.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/graph/checks.h"
#include "schedules/graph/lowering.h"
#include "schedules/graph/replay.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

constexpr test::PassTimes lengths{.forward = 3, .backward = 7, .input_grad = 4, .weight_grad = 2};

struct Shape {
  int pipeline, chunks, micro_batches, slices, data;
};

LoweringInput input_of(const Schedule& schedule, const Shape& shape) {
  LoweringInput input;
  input.model = llama("one layer a part", {.layers = shape.pipeline * shape.chunks,
                                           .hidden = 32,
                                           .ffn = 64,
                                           .heads = 4,
                                           .kv_heads = 4,
                                           .vocab = 256,
                                           .sequence = 24});
  input.layout = {.pipeline = shape.pipeline, .chunks = shape.chunks, .data = shape.data};
  input.schedule = schedule.name;
  input.slices = shape.slices;
  input.shape.sequence = 24 / shape.slices;
  input.global_batch = std::int64_t{shape.micro_batches} * shape.data;
  input.clip_norm = shape.data > 1 ? 1 : 0;
  return input;
}

bool holds_a_layer(const TaskGraph& graph, const Work& work) {
  const auto operators = operators_of(graph, work);
  const int last = static_cast<int>(blocks_of(graph.model).size()) - 1;
  for (int op = work.first_op; op < work.last_op; ++op) {
    const int block = operators[static_cast<std::size_t>(op)].block;
    if (block > 0 && block < last) return true;
  }
  return false;
}

// Layers take the lengths, everything else nothing.
Durations durations_of_layers(const TaskGraph& graph) {
  Durations durations(graph.tasks.size(), 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.works[static_cast<std::size_t>(graph.tasks[id].work)];
    if (work.kind == WorkKind::segment && holds_a_layer(graph, work)) durations[id] = lengths.of(work.pass);
  }
  return durations;
}

// Saved activations of layers on each pipeline rank at the worst moment, read off the graph's timeline.
std::vector<int> most_held(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<std::vector<std::pair<double, int>>> changes(static_cast<std::size_t>(graph.layout.pipeline));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const Work& work = graph.works[static_cast<std::size_t>(task.work)];
    if (work.kind != WorkKind::segment || !holds_a_layer(graph, work) || work.pass == Pass::input_grad) continue;
    const auto rank = static_cast<std::size_t>(graph.placement.rank[static_cast<std::size_t>(work.stage)]);
    // As the tests' replay counts: one more, or one less, from the moment at which the pass begins.
    changes[rank].emplace_back(timeline.start[id], work.pass == Pass::forward ? 1 : -1);
  }
  std::vector<int> most;
  for (auto& list : changes) {
    std::sort(list.begin(), list.end());
    int now = 0, largest = 0;
    for (const auto& [date, change] : list) largest = std::max(largest, now += change);
    most.push_back(largest);
  }
  return most;
}

void expect_sound(const Schedule& schedule, const Shape& shape) {
  const std::string name = schedule.name + ", p = " + std::to_string(shape.pipeline) + ", v = " +
                           std::to_string(shape.chunks) + ", m = " + std::to_string(shape.micro_batches) +
                           ", slices = " + std::to_string(shape.slices) + ", data = " + std::to_string(shape.data);
  const LoweringInput input = input_of(schedule, shape);
  const test::ReplayResult expected =
      test::replay_actions(step_actions(input), lengths, shape.pipeline * shape.chunks);
  ASSERT_TRUE(expected.finished) << name;
  TaskGraph graph = lower(input);
  const Durations durations = durations_of_layers(graph);
  set_global_order(graph, durations);
  for (const Violation& violation : check_graph(graph)) FAIL() << name << "\n" << describe(graph, violation);
  const Timeline timeline = replay(graph, durations);
  EXPECT_EQ(timeline.makespan_s, expected.makespan) << name;
  if (shape.data == 1) {
    EXPECT_EQ(most_held(graph, timeline), expected.most_in_flight) << name;
  }
}

TEST(ScheduleGrid, EveryScheduleKeepsTheInvariantsAndTakesTheTimeOfAnIndependentReplay) {
  for (const Schedule& schedule : all_schedules()) {
    int ran = 0;
    for (const int pipeline : {1, 2, 3, 4, 6})
      for (const int chunks : {1, 2, 3})
        for (const int micro_batches : {1, 2, pipeline, 2 * pipeline, 2 * pipeline + 1, 3 * pipeline})
          for (const int slices : {1, 2, 4})
            for (const int data : {1, 2}) {
              const ScheduleShape shape{pipeline, chunks, micro_batches, slices, schedule.copies};
              if (!schedule.refuse(shape).empty()) continue;
              expect_sound(schedule, {pipeline, chunks, micro_batches, slices, data});
              if (HasFatalFailure()) return;
              ++ran;
            }
    EXPECT_GE(ran, 20) << schedule.name;
  }
}

}  // namespace
}  // namespace slipway
