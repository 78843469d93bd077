// layout.split balanced over machines that are not alike or hold several stages, against every split there is; stages
// priced and judged by their own machine.
#include "schedules/graph/balanced_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/cost.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/metrics.h"
#include "sim/simulate.h"
#include "tests/every_split.h"

namespace slipway {
namespace {

Machine gpu(const std::string& name, double peak) {
  Machine machine;
  machine.name = name;
  machine.memory_bytes = 1e12;
  machine.peak_flops.fill(peak);
  machine.memory_bandwidth = peak / 10;
  machine.node_link = {"bus", 1e15, 0, 1};
  machine.network_link = {"wire", 1e15, 0, 1};
  return machine;
}

Cluster mixed(std::vector<double> peaks) {
  Cluster cluster;
  for (const double peak : peaks) cluster.groups.push_back({gpu("of " + std::to_string(peak), peak), 1, 1});
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

LoweringInput step(int pipeline, int layers, int micro_batches) {
  LoweringInput in;
  in.model = llama("llama", {.layers = layers,
                             .hidden = 128,
                             .ffn = 384,
                             .heads = 8,
                             .kv_heads = 8,
                             .vocab = 4096,
                             .sequence = 64});
  in.layout.pipeline = pipeline;
  in.shape.sequence = in.model.sequence;
  in.shape.sharding = sharding_of(in.layout);
  in.global_batch = micro_batches;
  return in;
}

TEST(TimeBalancedSplit, HasTheFastestSlowestStageOfAllSplits) {
  const std::vector<std::vector<double>> clusters{
      {1e13, 3e13}, {3e13, 1e13}, {1e13, 2e13, 5e13}, {4e13, 4e13, 1e13}};
  for (const std::vector<double>& peaks : clusters) {
    for (const int layers : {4, 7, 10}) {
      const Cluster cluster = mixed(peaks);
      const LoweringInput in = step(static_cast<int>(peaks.size()), layers, 4);
      const auto seconds = split_loads(in, cluster).seconds;
      const std::vector<int> balanced = time_balanced_layers(in, cluster);
      EXPECT_EQ(std::accumulate(balanced.begin(), balanced.end(), 0), layers);
      const double best = best_of_all(seconds).slowest;
      EXPECT_NEAR(evenness(loads(seconds, balanced)).slowest, best, 1e-12 * best) << layers;
    }
  }
}

TEST(TimeBalancedSplit, GivesAThreeTimesAsFastGpuAboutThreeTimesTheLayers) {
  LoweringInput in = step(2, 40, 4);
  in.model = llama("llama", {.layers = 40,
                             .hidden = 128,
                             .ffn = 384,
                             .heads = 8,
                             .kv_heads = 8,
                             .vocab = 128,
                             .sequence = 64});  // or the head is as much as several layers
  const std::vector<int> layers = time_balanced_layers(in, mixed({3e13, 1e13}));
  EXPECT_NEAR(layers[0], 30, 1);
  in.layout.split = SplitKind::balanced;
  in.layout.split_list = layers;
  EXPECT_EQ(split_blocks(in.model, in.layout)[0].last, layers[0] + 1);
}

// What a stage takes is what its segments take in the task graph, one micro-batch through it.
TEST(TimeBalancedSplit, WeighsWhatTheTaskGraphIsPricedBy) {
  const Cluster cluster = mixed({3e13, 1e13});
  const LoweringInput in = step(2, 4, 1);
  const auto seconds = split_loads(in, cluster).seconds;
  const TaskGraph graph = lower(in);
  const Durations durations = durations_of(graph, cluster);
  for (const std::int32_t rank : {0, 1}) {
    double compute = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id)
      if (graph.tasks[id].kind == TaskKind::compute && graph.tasks[id].rank == rank)
        compute += durations[id];
    EXPECT_NEAR(loads(seconds, {2, 2})[static_cast<std::size_t>(rank)], compute, 1e-9 * compute);
  }
}

TEST(TimeBalancedSplit, CountsTheSlowestReplicaOfAStage) {
  LoweringInput in = step(2, 12, 4);
  in.layout.data = 2;
  const Cluster both = mixed({3e13, 1e13, 1e13, 3e13}), slow = mixed({1e13, 1e13, 1e13, 1e13}),
                apart = mixed({3e13, 3e13, 1e13, 1e13});
  EXPECT_FALSE(has_unequal_stages(both, in.layout));
  EXPECT_TRUE(has_unequal_stages(apart, in.layout));
  EXPECT_EQ(groups_of_pipeline_ranks(both, in.layout), (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(split_loads(in, both).seconds, split_loads(in, slow).seconds);
  EXPECT_NE(split_loads(in, apart).seconds, split_loads(in, slow).seconds);
}

// Both directions of Chimera put a copy of each part on either GPU: no split helps.
TEST(TimeBalancedSplit, CountsTheSlowestHolderOfAPart) {
  LoweringInput in = step(2, 6, 4);
  in.schedule = "chimera";
  const auto seconds = split_loads(in, mixed({3e13, 1e13})).seconds;
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_EQ(seconds, split_loads(in, mixed({1e13, 1e13})).seconds);
}

// Simulated: two chunks on each of two ranks, in a ring and in a V, and a head that is worth several layers. Balanced
// chunk by chunk, the rank with the head would have as many layers in its other chunk as anybody.
TEST(TimeBalancedSplit, OfSeveralChunksARankStepsAtLeastAsFastAsChunkByChunk) {
  for (const char* schedule : {"interleaved-1f1b", "zb-v"}) {
    for (const std::vector<double>& peaks : {std::vector<double>{1e13, 1e13}, {3e13, 1e13}}) {
      LoweringInput in = step(2, 20, 16);
      in.model.runs.back().block.vocab = 16384;  // the head is as much as eight layers
      in.layout.chunks = 2;
      in.schedule = schedule;
      const Cluster cluster = mixed(peaks);
      const auto seconds = [&](std::vector<int> layers) {
        in.layout.split = SplitKind::list, in.layout.split_list = std::move(layers);
        TaskGraph graph = lower(in);
        const Durations durations = order_and_price(graph, cluster);
        return step_time_of(graph, simulate(graph, cluster, durations, {}).timeline);
      };
      SplitLoads chunks = split_loads(in, cluster);
      const std::vector<int> by_rank = balanced_layers(chunks).value();
      chunks.rank.clear();
      const double apart = seconds(balanced_layers(chunks).value());
      const double together = seconds(by_rank);
      EXPECT_LE(together, apart) << schedule;
      if (peaks[0] == peaks[1]) {
        EXPECT_LT(together, 0.95 * apart) << schedule;
      }
    }
  }
}

TEST(UnequalStages, ArePricedByTheirOwnMachine) {
  const LoweringInput in = step(2, 4, 2);
  const Cluster cluster = mixed({3e13, 1e13});
  EXPECT_TRUE(has_unequal_stages(cluster, in.layout));
  EXPECT_FALSE(has_unequal_stages(mixed({1e13, 1e13}), in.layout));
  const TaskGraph graph = lower(in);
  const Durations here = durations_of(graph, cluster), fast = durations_of(graph, mixed({3e13, 3e13})),
                  slow = durations_of(graph, mixed({1e13, 1e13}));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.tasks[id].communicator != none) continue;
    EXPECT_EQ(here[id], graph.tasks[id].rank == 0 ? fast[id] : slow[id]);
    EXPECT_NE(fast[id], slow[id]);
  }
}

TEST(UnequalStages, AreFasterInBalanceThanEven) {
  LoweringInput in = step(2, 16, 16);
  const Cluster cluster = mixed({3e13, 1e13});
  const auto seconds = [&] {
    TaskGraph graph = lower(in);
    const Durations durations = order_and_price(graph, cluster);
    return metrics_of(graph, simulate(graph, cluster, durations, {}).timeline, 1).step_time_s;
  };
  const double even = seconds();
  in.layout.split = SplitKind::list;
  in.layout.split_list = time_balanced_layers(in, cluster);
  EXPECT_LT(seconds(), 0.8 * even);
}

}  // namespace
}  // namespace slipway
