// layout.split balanced over machines that are not alike, against every split there is; stages priced and
// judged by their own machine.
#include "schedules/graph/balanced_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "models/cost.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/metrics.h"
#include "sim/simulate.h"

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

// Calls visit for every list of `stages` numbers that add up to `layers`.
template <class Visit>
void each_split(int stages, int layers, std::vector<int>& split, const Visit& visit) {
  for (int n = stages == 1 ? layers : 0; n <= layers; ++n) {
    split.push_back(n);
    if (stages == 1)
      visit(split);
    else
      each_split(stages - 1, layers - n, split, visit);
    split.pop_back();
  }
}

// Loads of the stages; empty when one between the first and the last would hold nothing.
std::vector<double> loads(const std::vector<std::vector<double>>& seconds, const std::vector<int>& layers) {
  std::vector<double> list;
  std::size_t block = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    std::size_t count =
        static_cast<std::size_t>(layers[s]) + (s == 0 ? 1 : 0) + (s + 1 == layers.size() ? 1 : 0);
    if (count == 0) return {};
    double& load = list.emplace_back(0);
    for (; count > 0; --count) load += seconds[s][block++];
  }
  return list;
}

struct Evenness {
  double slowest = 0, squares = 0;
};
Evenness evenness(const std::vector<double>& loads) {
  Evenness sum;
  for (const double load : loads) sum.slowest = std::max(sum.slowest, load), sum.squares += load * load;
  return sum;
}

// The slowest stage as fast as possible, then the least sum of squares, of every split.
Evenness best_of_all(const std::vector<std::vector<double>>& seconds) {
  Evenness best{1e300, 1e300};
  std::vector<int> split;
  const int stages = static_cast<int>(seconds.size()),
            layers = static_cast<int>(seconds.front().size()) - 2;
  each_split(stages, layers, split, [&](const std::vector<int>& one) {
    const std::vector<double> each = loads(seconds, one);
    if (each.empty()) return;
    const Evenness now = evenness(each);
    constexpr double same = 1 + 1e-12;
    const bool is_faster = now.slowest * same<best.slowest, is_slower = now.slowest> best.slowest * same;
    if (is_faster || (!is_slower && now.squares < best.squares)) best = now;
  });
  return best;
}

TEST(BalancedLayers, AreTheBestOfEverySplitOfRandomBlocksOnRandomGpus) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> block(0.1, 1), gpu(0.2, 3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t stages = 1 + random() % 4, blocks = stages + 2 + random() % 7;
    std::vector<double> blocks_s(blocks);
    const bool alike = i % 2 == 0;  // then many splits are equally fast
    for (double& one : blocks_s) one = alike ? 1 : block(random);
    std::vector<std::vector<double>> seconds;
    for (std::size_t s = 0; s < stages; ++s) {
      const double slowness = alike ? 1 + static_cast<double>(random() % 3) : gpu(random);
      seconds.push_back(blocks_s);
      for (double& one : seconds.back()) one *= slowness;
    }
    const std::vector<int> layers = balanced_layers(seconds);
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 2), static_cast<int>(blocks));
    const Evenness found = evenness(loads(seconds, layers)), best = best_of_all(seconds);
    EXPECT_NEAR(found.slowest, best.slowest, 1e-9) << i;
    EXPECT_NEAR(found.squares, best.squares, 1e-9) << i;
  }
}

TEST(BalancedLayers, OfMoreStagesThanBlocksAreRefused) {
  EXPECT_THROW(balanced_layers({{1, 1}, {1, 1}, {1, 1}}), std::invalid_argument);
}

TEST(TimeBalancedSplit, HasTheFastestSlowestStageOfAllSplits) {
  const std::vector<std::vector<double>> clusters{
      {1e13, 3e13}, {3e13, 1e13}, {1e13, 2e13, 5e13}, {4e13, 4e13, 1e13}};
  for (const std::vector<double>& peaks : clusters) {
    for (const int layers : {4, 7, 10}) {
      const Cluster cluster = mixed(peaks);
      const LoweringInput in = step(static_cast<int>(peaks.size()), layers, 4);
      const auto seconds = stage_block_seconds(in, cluster);
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
  const auto seconds = stage_block_seconds(in, cluster);
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
  EXPECT_EQ(stage_block_seconds(in, both), stage_block_seconds(in, slow));
  EXPECT_NE(stage_block_seconds(in, apart), stage_block_seconds(in, slow));
}

// Both directions of Chimera put a copy of each part on either GPU: no split helps.
TEST(TimeBalancedSplit, CountsTheSlowestHolderOfAPart) {
  LoweringInput in = step(2, 6, 4);
  in.schedule = "chimera";
  const auto seconds = stage_block_seconds(in, mixed({3e13, 1e13}));
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_EQ(seconds, stage_block_seconds(in, mixed({1e13, 1e13})));
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
