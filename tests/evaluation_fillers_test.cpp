// A second filler, which has nothing to do with K-FAC: evaluation micro-batches pass the pipeline in its
// bubbles.
#include <gtest/gtest.h>

#include <map>

#include "schedules/graph/durations.h"
#include "schedules/graph/evaluation_fillers.h"
#include "schedules/graph/memory_timeline.h"
#include "tests/hand_graph.h"

namespace slipway {
namespace {

struct Evaluated {
  TaskGraph step;
  Durations durations;
  Fillers fillers;
  Filling filling;
  Timeline timeline;
};

constexpr int evaluations = 3;

Evaluated evaluated(const char* schedule, Layout layout) {
  Evaluated e;
  LoweringInput input;
  input.model = llama(
      "small",
      {.layers = 8, .hidden = 64, .ffn = 256, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 64});
  input.layout = layout;
  input.schedule = schedule;
  input.shape = {.micro_batch = 2, .sequence = 64, .dtype = Dtype::float32};
  input.global_batch = 8 * layout.data;
  Cluster cluster = hand_cluster(1, rank_count(layout), 1e9, 1e-6);
  Machine& machine = cluster.groups[0].machine;
  machine.peak_flops[static_cast<std::size_t>(Dtype::float32)] = 1e11;
  machine.memory_bandwidth = 1e12;
  e.step = lower(input);
  e.durations = durations_of(e.step, cluster);
  set_global_order(e.step, e.durations);
  e.fillers = evaluation_fillers(e.step, cluster, e.durations, evaluations);
  e.filling = fill(e.step, e.durations, e.fillers);
  e.timeline = replay(e.filling.graph, e.filling.durations);
  return e;
}

class EvaluationFillers : public testing::TestWithParam<std::pair<const char*, Layout>> {};

TEST_P(EvaluationFillers, PassEveryStageInOrderWithTheirMessagesAndDelayNothing) {
  const Evaluated e = evaluated(GetParam().first, GetParam().second);
  for (const Violation& v : check_graph(e.filling.graph)) ADD_FAILURE() << describe(e.filling.graph, v);
  for (const Violation& v : check_filling(e.step, e.fillers, e.filling))
    ADD_FAILURE() << describe(e.filling.graph, v);
  const int stages = stage_count(e.step.layout), replicas = e.step.layout.data;
  std::map<std::tuple<int, int, int>, std::pair<double, double>> passes;  // (replica, micro-batch, stage)
  for (TaskId id = 0; id < e.filling.graph.tasks.size(); ++id) {
    const Task& task = e.filling.graph.tasks[id];
    const Work& work = e.filling.graph.works[static_cast<std::size_t>(task.work)];
    if (task.kind != TaskKind::filler) continue;
    passes[{task.rank % replicas, task.micro_batch, work.stage}] = {e.timeline.start[id],
                                                                    e.timeline.end[id]};
  }
  EXPECT_EQ(passes.size(), static_cast<std::size_t>(replicas * evaluations * stages));
  for (const auto& [at, span] : passes) {
    const auto [replica, micro_batch, stage] = at;
    if (stage == 0) continue;
    EXPECT_GE(span.first, (passes.at({replica, micro_batch, stage - 1}).second));
  }
}
INSTANTIATE_TEST_SUITE_P(Of, EvaluationFillers,
                         testing::Values(std::pair("gpipe", Layout{.pipeline = 4}),
                                         std::pair("1f1b", Layout{.pipeline = 2, .data = 2}),
                                         std::pair("interleaved-1f1b",
                                                   Layout{.pipeline = 2, .chunks = 2}),
                                         std::pair("zb-h1", Layout{.pipeline = 4}),
                                         // Stages in a V: behind the window a micro-batch is a chain over all ranks.
                                         std::pair("zb-v", Layout{.pipeline = 4, .chunks = 2}),
                                         std::pair("zb-v", Layout{.pipeline = 2, .chunks = 2, .data = 2}),
                                         std::pair("dualpipe-v", Layout{.pipeline = 4, .chunks = 2})));

TEST(EvaluationFillersMemory, AFrozenCopyOfTheWeightsIsCounted) {
  const Evaluated e = evaluated("gpipe", {.pipeline = 2});
  EXPECT_DOUBLE_EQ(e.filling.graph.static_bytes[0].weights, 2 * e.step.static_bytes[0].weights);
}

TEST(EvaluationFillersMemory, ShardedLayersAreRefused) {
  EXPECT_THROW(evaluated("gpipe", {.tensor = 2, .pipeline = 2}), std::invalid_argument);
}

}  // namespace
}  // namespace slipway
