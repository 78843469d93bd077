// The search of layout.split balanced on plain numbers, against every split there is.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "schedules/graph/balanced_split.h"
#include "tests/every_split.h"

namespace slipway {
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

// Loads of ranks, and whether they keep to most_layers; of a split that leaves a stage without a block nothing.
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

// Ranks of random speeds with one to three stages each, in a ring and in a V, embedding and head of random weights, with
// and without limits; the truth is every split.
TEST(BalancedLayers, OfRanksWithSeveralStagesAreTheBestOfEverySplit) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> weight(0.1, 3);
  int impossible = 0;
  for (int i = 0; i < 300; ++i) {
    const int ranks = 1 + static_cast<int>(random() % 3), chunks = 1 + static_cast<int>(random() % 3);
    const int stages = ranks * chunks, layers = stages + static_cast<int>(random() % 4);
    SplitLoads given;
    std::vector<double> blocks(static_cast<std::size_t>(layers + 2), 1);
    blocks.front() = weight(random), blocks.back() = weight(random);
    std::vector<double> slowness;
    for (int r = 0; r < ranks; ++r) slowness.push_back(i % 2 == 0 ? 1 : weight(random));
    for (int s = 0; s < stages; ++s) {
      const int place = s % ranks, rank = i % 3 == 0 && s / ranks % 2 == 1 ? ranks - 1 - place : place;
      given.rank.push_back(rank);
      given.seconds.push_back(blocks);
      for (double& one : given.seconds.back()) one *= slowness[static_cast<std::size_t>(rank)];
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
      const bool is_faster = now.slowest * same < best.slowest, is_slower = now.slowest > best.slowest * same;
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

// One stage a rank, layers that are not alike, limits: the other way of the search.
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
}  // namespace slipway
