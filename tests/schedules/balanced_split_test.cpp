// layout.split balanced, on unlike machines or with several stages a rank, against every split. Each stage is priced
// and judged by its own machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "models/machine/cost.h"
#include "models/machine/priced_cluster.h"
#include "schedules/bound/balanced_split.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"
#include "tests/support/every_split.h"

namespace slipway::test {

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

PricedCluster mixed(std::vector<double> peaks) {
  PricedCluster cluster;
  for (const double peak : peaks) cluster.groups.push_back({gpu("of " + std::to_string(peak), peak), 1, 1});
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

Step step(int pipeline, int layers, int micro_batches) {
  Step in;
  in.model = llama(
      "llama", {.layers = layers, .hidden = 128, .ffn = 384, .heads = 8, .kv_heads = 8, .vocab = 4096, .sequence = 64});
  in.layout.pipeline = pipeline;
  in.global_batch = micro_batches;
  return in;
}

TEST(TimeBalancedSplit, HasTheFastestSlowestStageOfAllSplits) {
  const std::vector<std::vector<double>> clusters{{1e13, 3e13}, {3e13, 1e13}, {1e13, 2e13, 5e13}, {4e13, 4e13, 1e13}};
  for (const std::vector<double>& peaks : clusters) {
    for (const int layers : {4, 7, 10}) {
      const PricedCluster cluster = mixed(peaks);
      const Step in = step(static_cast<int>(peaks.size()), layers, 4);
      const auto seconds = split_loads(in, cluster).seconds;
      const std::vector<int> balanced = balanced_layers(split_loads(in, cluster)).value();
      EXPECT_EQ(std::accumulate(balanced.begin(), balanced.end(), 0), layers);
      const double best = best_of_all(seconds).slowest;
      EXPECT_NEAR(evenness(loads(seconds, balanced)).slowest, best, 1e-12 * best) << layers;
    }
  }
}

TEST(TimeBalancedSplit, GivesAThreeTimesAsFastGpuAboutThreeTimesTheLayers) {
  Step in = step(2, 40, 4);
  in.model = llama("llama", {.layers = 40,
                             .hidden = 128,
                             .ffn = 384,
                             .heads = 8,
                             .kv_heads = 8,
                             .vocab = 128,
                             .sequence = 64});  // the head may be as much as several layers
  const std::vector<int> layers = balanced_layers(split_loads(in, mixed({3e13, 1e13}))).value();
  EXPECT_NEAR(layers[0], 30, 1);
  in.layout.split = SplitKind::balanced;
  in.layout.split_list = layers;
  EXPECT_EQ(split_blocks(in.model, in.layout)[0].last, layers[0] + 1);
}

// A stage's load equals the seconds of its segments in the task graph for one micro-batch.
TEST(TimeBalancedSplit, WeighsWhatTheTaskGraphIsPricedBy) {
  const PricedCluster cluster = mixed({3e13, 1e13});
  const Step in = step(2, 4, 1);
  const auto seconds = split_loads(in, cluster).seconds;
  const TaskGraph graph = lower(in);
  const Durations durations = durations_of(graph, cluster);
  for (const std::int32_t rank : {0, 1}) {
    double compute = 0;
    for (TaskId id = 0; id < graph.tasks.size(); ++id)
      if (graph.tasks[id].kind == TaskKind::compute && graph.tasks[id].rank == rank) compute += durations[id];
    EXPECT_NEAR(loads(seconds, {2, 2})[rank], compute, 1e-9 * compute);
  }
}

TEST(TimeBalancedSplit, CountsTheSlowestReplicaOfAStage) {
  Step in = step(2, 12, 4);
  in.layout.data = 2;
  const PricedCluster both = mixed({3e13, 1e13, 1e13, 3e13}), slow = mixed({1e13, 1e13, 1e13, 1e13}),
                      apart = mixed({3e13, 3e13, 1e13, 1e13});
  EXPECT_FALSE(has_unequal_stages(both, in.layout));
  EXPECT_TRUE(has_unequal_stages(apart, in.layout));
  EXPECT_EQ(groups_of_pipeline_ranks(both, in.layout), (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(split_loads(in, both).seconds, split_loads(in, slow).seconds);
  EXPECT_NE(split_loads(in, apart).seconds, split_loads(in, slow).seconds);
}

// Both directions of Chimera put a copy of each part on either GPU, so no split helps.
TEST(TimeBalancedSplit, CountsTheSlowestHolderOfAPart) {
  Step in = step(2, 6, 4);
  in.schedule = "chimera";
  const auto seconds = split_loads(in, mixed({3e13, 1e13})).seconds;
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_EQ(seconds, split_loads(in, mixed({1e13, 1e13})).seconds);
}

// Simulated: two chunks on each of two ranks, in a ring and in a V, and a head that is worth several layers. Balanced
// chunk by chunk, the rank with the head would have as many layers in its other chunk as the other rank.
TEST(TimeBalancedSplit, OfSeveralChunksARankStepsAtLeastAsFastAsChunkByChunk) {
  for (const char* schedule : {"interleaved-1f1b", "zb-v"}) {
    for (const std::vector<double>& peaks : {std::vector<double>{1e13, 1e13}, {3e13, 1e13}}) {
      Step in = step(2, 20, 16);
      Model model = in.model;
      model.runs.back().block.vocab = 16384;  // the head is as much as eight layers
      in.model = model;
      in.layout.chunks = 2;
      in.schedule = schedule;
      const PricedCluster cluster = mixed(peaks);
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
  const Step in = step(2, 4, 2);
  const PricedCluster cluster = mixed({3e13, 1e13});
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
  Step in = step(2, 16, 16);
  const PricedCluster cluster = mixed({3e13, 1e13});
  const auto seconds = [&] {
    TaskGraph graph = lower(in);
    const Durations durations = order_and_price(graph, cluster);
    return metrics_of(graph, simulate(graph, cluster, durations, {}).timeline, 1).step_time_s;
  };
  const double even = seconds();
  in.layout.split = SplitKind::list;
  in.layout.split_list = balanced_layers(split_loads(in, cluster)).value();
  EXPECT_LT(seconds(), 0.8 * even);
}

}  // namespace

// The search of layout.split balanced on plain numbers, against every split there is.

namespace {

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
    const std::vector<int> layers = balanced_layers({seconds, {}, {}}).value();
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 2), static_cast<int>(blocks));
    const Evenness found = evenness(loads(seconds, layers)), best = best_of_all(seconds);
    EXPECT_NEAR(found.slowest, best.slowest, 1e-9) << i;
    EXPECT_NEAR(found.squares, best.squares, 1e-9) << i;
  }
}

TEST(BalancedLayers, OfMoreStagesThanBlocksAreRefused) {
  EXPECT_THROW(balanced_layers({{{1, 1}, {1, 1}, {1, 1}}, {}, {}}), std::invalid_argument);
}

// Loads of ranks, and whether they keep to most_layers; nothing for a split that leaves a stage without a block.
struct RankLoads {
  std::vector<double> seconds;
  bool keeps = true;
};
std::optional<RankLoads> rank_loads(const SplitLoads& of, const std::vector<int>& layers) {
  const std::vector<double> stages = loads(of.seconds, layers);
  if (stages.empty()) return std::nullopt;
  const auto ranks = static_cast<std::size_t>(*std::max_element(of.rank.begin(), of.rank.end()) + 1);
  RankLoads sums{std::vector<double>(ranks, 0), true};
  std::vector<int> held(ranks, 0);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const auto rank = static_cast<std::size_t>(of.rank[s]);
    sums.seconds[rank] += stages[s];
    held[rank] += layers[s];
    sums.keeps &= of.most_layers.empty() || held[rank] <= of.most_layers[rank];
  }
  return sums;
}

// Ranks of random speeds with one to three stages each, in a ring and in a V, with embedding and head of random
// weights, with and without limits. The truth is every split.
TEST(BalancedLayers, OfRanksWithSeveralStagesAreTheBestOfEverySplit) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> weight(0.1, 3);
  int impossible = 0;
  for (int i = 0; i < 300; ++i) {
    const int ranks = 1 + static_cast<int>(random() % 3), chunks = 1 + static_cast<int>(random() % 3);
    const int stages = ranks * chunks, layers = stages + static_cast<int>(random() % 4);
    SplitLoads given;
    std::vector<double> blocks(layers + 2, 1);
    blocks.front() = weight(random), blocks.back() = weight(random);
    std::vector<double> slowness;
    for (int r = 0; r < ranks; ++r) slowness.push_back(i % 2 == 0 ? 1 : weight(random));
    for (int s = 0; s < stages; ++s) {
      const int place = s % ranks, rank = i % 3 == 0 && s / ranks % 2 == 1 ? ranks - 1 - place : place;
      given.rank.push_back(rank);
      given.seconds.push_back(blocks);
      for (double& one : given.seconds.back()) one *= slowness[rank];
    }
    for (int r = 0; i % 4 < 2 && r < ranks; ++r)
      given.most_layers.push_back(static_cast<int>(random() % static_cast<unsigned>(layers)) + 1);
    Evenness best{1e300, 1e300};
    std::vector<int> split;
    each_split(stages, layers, split, [&](const std::vector<int>& one) {
      const auto sums = rank_loads(given, one);
      if (!sums || !sums->keeps) return;
      const Evenness now = evenness(sums->seconds);
      constexpr double same = 1 + 1e-12;
      const bool is_faster = now.slowest * same<best.slowest, is_slower = now.slowest> best.slowest * same;
      if (is_faster || (!is_slower && now.squares < best.squares)) best = now;
    });
    const std::optional<std::vector<int>> found = balanced_layers(given);
    EXPECT_EQ(found.has_value(), best.slowest < 1e300) << i;
    impossible += found ? 0 : 1;
    if (!found) continue;
    EXPECT_EQ(std::accumulate(found->begin(), found->end(), 0), layers);
    const auto sums = rank_loads(given, *found);
    ASSERT_TRUE(sums && sums->keeps) << i;
    EXPECT_NEAR(evenness(sums->seconds).slowest, best.slowest, 1e-9) << i;
    EXPECT_NEAR(evenness(sums->seconds).squares, best.squares, 1e-9) << i;
  }
  EXPECT_GT(impossible, 10);
}

// One stage a rank, unlike layers, limits: the other branch of the search.
TEST(BalancedLayers, KeepToTheMostThatEachRankCanHold) {
  const std::vector<double> blocks{0.5, 1, 2, 1, 3, 1, 2};  // five layers
  for (int first = 0; first <= 5; ++first)
    for (int second = 0; second <= 5; ++second) {
      const SplitLoads given{{blocks, blocks}, {0, 1}, {first, second}};
      const auto found = balanced_layers(given);
      EXPECT_EQ(found.has_value(), first + second >= 5);
      if (!found) continue;
      double best = 1e300;
      for (int n = 5 - second; n <= first; ++n)
        if (n >= 0 && n <= 5) best = std::min(best, evenness(loads(given.seconds, {n, 5 - n})).slowest);
      EXPECT_LE((*found)[0], first);
      EXPECT_LE((*found)[1], second);
      EXPECT_DOUBLE_EQ(evenness(loads(given.seconds, *found)).slowest, best);
    }
}

}  // namespace

}  // namespace slipway::test
