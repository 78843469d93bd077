// What sequence parallelism gathers twice, and what of it waits in between: shards before the projections,
// a second gather for each weight gradient, hidden behind the projection before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedules/graph/checks.h"
#include "schedules/graph/memory_timeline.h"
#include "schedules/graph/replay.h"
#include "tests/tiny_runs.h"

namespace slipway {
namespace {

constexpr Degrees tensor_pair{.tensor = 2, .pipeline = 2, .sequence_parallel = true};

TaskGraph graph_of(const Degrees& degrees, const std::string& schedule = "1f1b",
                   Recompute recompute = Recompute::none) {
  LoweringInput input = with_layout(tiny_llama(4, false), degrees);
  input.schedule = schedule;
  input.recompute = recompute;
  input.shape.sharding = sharding_of(input.layout);
  TaskGraph graph = lower(input);
  set_global_order(graph, unit_durations(graph));
  return graph;
}

const Work& work_of(const TaskGraph& graph, TaskId task) {
  return graph.works[static_cast<std::size_t>(graph.tasks[task].work)];
}

std::set<std::string> gathers_of_micro_batch(const TaskGraph& graph, int micro_batch) {
  std::set<std::string> labels;
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    if (gathers_again(graph, work_of(graph, task)) && graph.tasks[task].micro_batch == micro_batch)
      labels.insert(label_of(graph, task));
  return labels;
}

TEST(GatheredInputs, OfQkvMlpAndHeadAreGatheredOnceMoreInTheBackwardPass) {
  const std::set<std::string> expected{"0B1.L0.ag1_again", "0B1.L0.ag2_again", "0B1.L1.ag1_again",
                                       "0B1.L1.ag2_again", "1B1.L2.ag1_again", "1B1.L2.ag2_again",
                                       "1B1.L3.ag1_again", "1B1.L3.ag2_again", "1B1.head.ag_head_again"};
  EXPECT_EQ(gathers_of_micro_batch(graph_of(tensor_pair), 1), expected);
}

TEST(GatheredInputs, AreGatheredForTheWeightGradientsWhereTheBackwardPassIsSplit) {
  const TaskGraph graph = graph_of(tensor_pair, "zb-h1");
  EXPECT_EQ(gathers_of_micro_batch(graph, 1).size(), 9U);
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    for (const BufferId in : graph.inputs[task]) {
      const std::int32_t writer = graph.buffers[in].writer;
      if (writer == none || !gathers_again(graph, work_of(graph, static_cast<TaskId>(writer)))) continue;
      EXPECT_EQ(work_of(graph, task).pass, Pass::weight_grad) << label_of(graph, task);
    }
  }
}

TEST(GatheredInputs, OfARecomputedLayerAreNotGatheredAThirdTime) {
  const std::set<std::string> head{"1B1.head.ag_head_again"};
  EXPECT_EQ(gathers_of_micro_batch(graph_of(tensor_pair, "1f1b", Recompute::full), 1), head);
}

TEST(GatheredInputs, AreGatheredOnceWithoutSequenceParallelism) {
  EXPECT_TRUE(gathers_of_micro_batch(graph_of({.tensor = 2, .pipeline = 2}), 1).empty());
}

TEST(GatheredInputs, KeepAGraphSound) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    for (const int zero : {0, 2, 3}) {
      Degrees degrees = tensor_pair;
      degrees.data = 2, degrees.zero = zero;
      const std::vector<Violation> violations = check_graph(graph_of(degrees, schedule));
      EXPECT_TRUE(violations.empty())
          << schedule << " ZeRO " << zero << (violations.empty() ? "" : violations.front().message);
    }
  }
}

// Tokens × hidden of float64: shards of two inputs a layer and of the head's, and no whole one.
TEST(GatheredInputs, AreKeptAsShards) {
  const TaskGraph graph = graph_of({.tensor = 2, .sequence_parallel = true}, "gpipe");
  const double shard = 16 / 2 * 32 * 8;
  const RankMemory memory = memory_timeline(graph, replay(graph, unit_durations(graph)))[0];
  EXPECT_EQ(memory.parts[MemoryPart::projection_inputs] / shard, 8 * 4 * 2)
      << "micro-batches, layers, inputs";
}

// Nobody holds more than two gathered inputs of the backward passes at a time: one in use, one on its way.
TEST(GatheredInputs, ComeAtMostOneProjectionAhead) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    const TaskGraph graph = graph_of(tensor_pair, schedule);
    const Durations durations = unit_durations(graph);
    const Timeline timeline = replay(graph, durations);
    std::map<double, int> changes;
    std::map<BufferId, double> until;
    for (TaskId task = 0; task < graph.tasks.size(); ++task)
      for (const BufferId in : graph.inputs[task]) until[in] = std::max(until[in], timeline.end[task]);
    for (BufferId b = 0; b < graph.buffers.size(); ++b) {
      const std::int32_t writer = graph.buffers[b].writer;
      if (graph.buffers[b].rank != 0 || writer == none ||
          !gathers_again(graph, work_of(graph, static_cast<TaskId>(writer))))
        continue;
      ++changes[timeline.end[static_cast<TaskId>(writer)]];
      --changes[until[b]];
    }
    int held = 0, most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, held += change);
    EXPECT_GE(most, 1) << schedule;
    EXPECT_LE(most, 2) << schedule;
  }
}

}  // namespace
}  // namespace slipway
