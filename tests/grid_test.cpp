#include "schedules/graph/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "schedules/graph/lowering.h"
#include "tests/unit_replay.h"

namespace slipway {
namespace {

ActionLists lists_of(const char* name, const ScheduleShape& shape) {
  return schedule_named(name)->actions(shape);
}

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
        if (!schedule.refuse(shape).empty()) continue;
        const ActionLists lists = schedule.actions(shape);
        const int parts = p * schedule.default_chunks;
        EXPECT_EQ(unit_times(lists, parts).columns, test::replay_actions(lists, {}, parts).makespan)
            << schedule.name;
      }
    }
  }
}

TaskGraph graph_of(int tensor, int pipeline, int data) {
  LoweringInput input;
  input.model = llama(
      "small",
      {.layers = 6, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
  input.layout.tensor = tensor, input.layout.pipeline = pipeline, input.layout.data = data;
  input.shape.sequence = 32;
  input.shape.dtype = Dtype::float32;
  input.global_batch = 4 * data;
  TaskGraph graph = lower(input);
  set_global_order(graph, Durations(graph.tasks.size(), 1.0));
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
}  // namespace slipway
