// Every schedule of the catalogue over a grid of shapes. Its graph keeps the invariants I1 to I9. Without communication
// it takes the time, and holds the micro-batches, of the tests' own list replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "schedules/check/check.h"
#include "schedules/draw/grid.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/unit_replay.h"

namespace slipway::test {

namespace {

constexpr test::PassTimes lengths{.forward = 3, .backward = 7, .input_grad = 4, .weight_grad = 2};

struct Shape {
  int pipeline, chunks, micro_batches, slices, data;
};

Step input_of(const Schedule& schedule, const Shape& shape) {
  Step input;
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
  input.global_batch = std::int64_t{shape.micro_batches} * shape.data;
  input.clip_norm = shape.data > 1 ? 1 : 0;
  return input;
}

bool holds_a_layer(const TaskGraph& graph, const Work& work) {
  const auto operators = graph.operators(work);
  const int last = static_cast<int>(blocks_of(graph.step.model).size()) - 1;
  for (int op = work.first_op; op < work.last_op; ++op) {
    const int block = operators[op].block;
    if (block > 0 && block < last) return true;
  }
  return false;
}

// Only layers take time: the given lengths.
Durations durations_of_layers(const TaskGraph& graph) {
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.work(id);
    if (work.kind == WorkKind::segment && holds_a_layer(graph, work)) durations[id] = lengths.of(work.pass);
  }
  return durations;
}

// Saved activations of layers on each pipeline rank at the worst moment, from the graph's timeline.
std::vector<int> most_held(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<std::vector<std::pair<double, int>>> changes(graph.step.layout.pipeline);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const Work& work = graph.work(task);
    if (work.kind != WorkKind::segment || !holds_a_layer(graph, work) || work.pass == Pass::input_grad) continue;
    const auto rank = static_cast<std::size_t>(graph.placement.rank[work.stage]);
    // As in the tests' replay: one more, or one less, from the moment at which the pass begins.
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
  const std::string name = schedule.name + ", p = " + std::to_string(shape.pipeline) +
                           ", v = " + std::to_string(shape.chunks) + ", m = " + std::to_string(shape.micro_batches) +
                           ", slices = " + std::to_string(shape.slices) + ", data = " + std::to_string(shape.data);
  const Step input = input_of(schedule, shape);
  ActionLists one_by_one = action_lists(input);  // actions without messages inside do not alternate
  for (auto& list : one_by_one)
    for (Action& action : list) action.with_next = false;
  const test::ReplayResult expected = test::replay_actions(one_by_one, lengths, shape.pipeline * shape.chunks);
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
              if (schedule.refuse(shape)) continue;
              expect_sound(schedule, {pipeline, chunks, micro_batches, slices, data});
              if (HasFatalFailure()) return;
              ++ran;
            }
    EXPECT_GE(ran, 20) << schedule.name;
  }
}

}  // namespace

namespace {

ActionLists lists_of(const char* name, const ScheduleShape& shape) { return schedule_named(name)->actions(shape); }

TEST(Grid, ShowsGpipe) {
  EXPECT_EQ(grid(lists_of("gpipe", {.pipeline = 3, .micro_batches = 3})),
            "rank 0 │ 0F0 0F1 0F2  .   .   .   .  0B0 0B1 0B2\n"
            "rank 1 │  .  1F0 1F1 1F2  .   .  1B0 1B1 1B2  .\n"
            "rank 2 │  .   .  2F0 2F1 2F2 2B0 2B1 2B2  .   .\n");
}

TEST(Grid, ShowsOneForwardOneBackward) {
  EXPECT_EQ(grid(lists_of("1f1b", {.pipeline = 3, .micro_batches = 4})),
            "rank 0 │ 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3\n"
            "rank 1 │  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3  .\n"
            "rank 2 │  .   .  2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3  .   .\n");
}

TEST(Grid, ShowsInterleavedOneForwardOneBackward) {
  EXPECT_EQ(grid(lists_of("interleaved-1f1b", {.pipeline = 2, .chunks = 2, .micro_batches = 2})),
            "rank 0 │ 0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1\n"
            "rank 1 │  .  1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1  .\n");
}

// The picture's replay and the tests' own agree on the makespan.
TEST(Grid, HasAsManyColumnsAsTheUnitTimeMakespan) {
  for (const Schedule& schedule : all_schedules()) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int m : {4, 6, 12}) {
        const ScheduleShape shape{.pipeline = p,
                                  .chunks = schedule.default_chunks,
                                  .micro_batches = m,
                                  .slices = schedule.default_slices,
                                  .copies = schedule.copies};
        if (schedule.refuse(shape)) continue;
        const ActionLists lists = schedule.actions(shape);
        const int parts = p * schedule.default_chunks;
        EXPECT_EQ(unit_times(lists, parts).columns, test::replay_actions(lists, {}, parts).makespan) << schedule.name;
      }
    }
  }
}

TaskGraph graph_of(int tensor, int pipeline, int data) {
  Step input;
  input.model =
      llama("small", {.layers = 6, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = tensor, input.layout.pipeline = pipeline, input.layout.data = data;
  input.dtype = Dtype::float32;
  input.global_batch = 4 * data;
  TaskGraph graph = lower(input);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

// Segments of tensor-parallel layers collapse to their action, so the graph looks like its schedule.
TEST(Grid, OfAGraphShowsOneReplicaAndCollapsesSegmentsToActions) {
  const std::string rows =
      "rank 0 │ 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3\n"
      "rank 4 │  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3  .\n"
      "rank 8 │  .   .  2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3  .   .\n";
  EXPECT_EQ(grid(graph_of(2, 3, 2)), rows);
}

TEST(Grid, ShowsTheRanksThatAreAskedFor) {
  EXPECT_EQ(grid(graph_of(2, 3, 2), {.ranks = {7, 2}, .culprits = {}}),
            "rank 2 │ 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3\n"
            "rank 7 │  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3  .\n");
}

TEST(Grid, MarksACulpritInItsOwnReplicaAndCutsAWindowAroundIt) {
  const TaskGraph graph = graph_of(1, 2, 2);
  TaskId culprit = 0;
  while (label_of(graph, culprit) != "1B1" || members_of(graph, culprit).front() != 3) ++culprit;
  EXPECT_EQ(grid(graph, {.ranks = {}, .culprits = {culprit}, .around = 2}),
            "rank 1 │ …   .    0B0   0F2   0B1   0F3  …\n"
            "rank 3 │ …  1B0   1F1  *1B1*  1F2   1B2  …\n");
}

TEST(Grid, PutsACulpritThatIsNoActionBehindItsRow) {
  const TaskGraph graph = graph_of(1, 2, 1);
  TaskId culprit = 0;
  while (label_of(graph, culprit) != "1.opt") ++culprit;
  EXPECT_THAT(grid(graph, {.ranks = {}, .culprits = {culprit}}), testing::EndsWith(" *1.opt*\n"));
}

TEST(Dot, HasEveryTaskAndEdgeOnceAndIsTheSameEachTime) {
  const TaskGraph graph = graph_of(2, 2, 1);
  std::ostringstream once, again;
  write_dot(once, graph);
  write_dot(again, graph);
  EXPECT_EQ(once.str(), again.str());
  std::size_t nodes = 0, edges = 0, clusters = 0;
  std::istringstream lines(once.str());
  for (std::string line; std::getline(lines, line);) {
    if (line.find("[label=") != std::string::npos) ++nodes;
    if (line.find("subgraph") != std::string::npos) ++clusters;
    if (line.find("->") != std::string::npos && line.find("dotted") == std::string::npos) ++edges;
  }
  EXPECT_EQ(nodes, graph.tasks.size());
  EXPECT_EQ(edges, graph.successors.values.size());
  EXPECT_EQ(clusters, 4U);
}

}  // namespace

}  // namespace slipway::test
