// layout.split balanced where GPUs are short of memory: against the verdict on every split.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "scenarios/language/check_scenario.h"
#include "scenarios/memory/changes.h"
#include "scenarios/search/search.h"
#include "schedules/graph/balanced_split.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

class BalancedStages : public testing::Test {
 protected:
  // Two nodes of one GPU each, the first with three times the speed; memory in MB.
  LoadResult loaded(double fast_mb, double slow_mb, const std::string& more, int layers = 12) {
    folder_.write("fast.yaml", machine("fast", "3 TFLOP/s", fast_mb));
    folder_.write("slow.yaml", machine("slow", "1 TFLOP/s", slow_mb));
    return folder_.load("model: {family: llama, layers: " + std::to_string(layers) +
                        ", hidden: 64, ffn: 192, heads: 8, vocab: 256, sequence: 128}\n"
                        "cluster: {groups: [{machine: ./fast.yaml, nodes: 1, gpus_per_node: 1}, {machine: ./slow.yaml, "
                        "nodes: 1, gpus_per_node: 1}]}\n" + more);
  }
  Scenario scenario(double fast_mb, double slow_mb, const std::string& more, int layers = 12) {
    const LoadResult result = loaded(fast_mb, slow_mb, more, layers);
    EXPECT_TRUE(result.errors.empty()) << describe(result.errors);
    return result.scenario;
  }

  ScenarioFolder& folder() { return folder_; }

 private:
  static std::string machine(const std::string& name, const std::string& peak, double mb) {
    return "name: " + name + "\nmemory_bytes: " + std::to_string(mb) + " MB\npeak_flops: {float32: " + peak +
           ", bfloat16: " + peak +
           "}\nmemory_bandwidth: 500 GB/s\nnetwork_link: {name: wire, bandwidth: 10 GB/s, latency: 5 us}\n";
  }
  ScenarioFolder folder_;
};

const std::string two_stages = "layout: {pipeline: 2, split: balanced}\nschedule: {global_batch: 8}\n";

Scenario with_split(const Scenario& scenario, std::vector<int> layers) {
  Scenario one = scenario;
  one.layout.split = SplitKind::list, one.layout.split_list = std::move(layers);
  return one;
}

// Seconds of the slowest of two ranks with a stage each.
double slowest(const Scenario& scenario, int first) {
  const SplitLoads loads = split_loads(lowering_input(scenario), scenario.cluster);
  const auto sum = [](const std::vector<double>& row, int from, int to) {
    return std::accumulate(row.begin() + from, row.begin() + to, 0.0);
  };
  const int blocks = static_cast<int>(loads.seconds[0].size());
  return std::max(sum(loads.seconds[0], 0, first + 1), sum(loads.seconds[1], first + 1, blocks));
}

TEST_F(BalancedStages, HoldWhatFitsOfEverySplitTheFastest) {
  const Scenario roomy = scenario(1e4, 1e4, two_stages);
  EXPECT_GE(roomy.layout.split_list.at(0), 8);
  const std::vector<StageNeed> needs = stage_needs(roomy);
  int moved = 0, nothing = 0;
  for (const double fast : {1.01, 0.9, 0.8, 0.6, 0.4})
    for (const double slow : {1.01, 1.5, 3.0}) {
      const Scenario short_of = scenario(fast * needs[0].bytes / 1e6, slow * needs[1].bytes / 1e6, two_stages);
      double best = 1e300;
      for (int n = 0; n <= 12; ++n)
        if (verdict_of(with_split(short_of, {n, 12 - n})).fits) best = std::min(best, slowest(short_of, n));
      const int found = short_of.layout.split_list.at(0);
      if (best < 1e300) {
        EXPECT_TRUE(verdict_of(short_of).fits) << fast << ' ' << slow;
        EXPECT_DOUBLE_EQ(slowest(short_of, found), best) << fast << ' ' << slow;
        moved += found < roomy.layout.split_list[0] ? 1 : 0;
      } else {
        EXPECT_EQ(short_of.layout.split_list, roomy.layout.split_list) << "nothing fits: as if memory had no say";
        ++nothing;
      }
    }
  EXPECT_GT(moved, 3);
  EXPECT_GT(nothing, 1);
}

// The search knows memory by a bound only, so it looks at splits with room to spare besides.
TEST_F(BalancedStages, ArePlannedToFitWhereTheFastestSplitDoesNot) {
  const Scenario roomy = scenario(1e4, 1e4, two_stages);
  const std::vector<StageNeed> needs = stage_needs(roomy);
  for (const double fast : {0.9, 0.7}) {
    const Scenario short_of = scenario(fast * needs[0].bytes / 1e6, 3 * needs[1].bytes / 1e6, two_stages);
    const std::vector<std::string> kept{"layout.pipeline",      "layout.data",          "layout.zero", "layout.chunks",
                                        "schedule.micro_batch", "schedule.recompute",   "layout.context",
                                        "layout.tensor",        "schedule.name",        "layout.placement"};
    const SearchOptions options{.best = 1, .memory_share = 1, .workers = 2, .progress = {}, .interrupted = {}};
    const SearchResult free = search_layouts(short_of, search_space(short_of, kept), options);
    ASSERT_FALSE(free.best.empty()) << fast;
    EXPECT_LE(free.best.front().memory_share, 1);
    double best = 1e300;
    for (int n = 0; n <= 12; ++n) {
      LayoutChoice choice = free.best.front().choice;
      choice.layout.split = SplitKind::list, choice.layout.split_list = {n, 12 - n};
      const PricedLayout row = price_if_it_fits(short_of, choice, 1);
      if (fits(row, 1)) best = std::min(best, row.step_time_s);
    }
    EXPECT_NEAR(free.best.front().step_time_s, best, 1e-9 * best) << fast;
    std::vector<std::string> all = kept;
    all.push_back("layout.split");
    const SearchResult as_it_is = search_layouts(short_of, search_space(short_of, all), options);
    ASSERT_FALSE(as_it_is.best.empty()) << fast;
    EXPECT_EQ(as_it_is.best.front().choice.layout.split, SplitKind::balanced);
  }
}

const std::string two_chunks = "layout: {pipeline: 2, chunks: 2, split: balanced}\nschedule: {name: interleaved-1f1b, global_batch: 8}\n";

TEST_F(BalancedStages, OfSeveralChunksBalanceTheRanks) {
  const LoadResult result = loaded(1e4, 1e4, two_chunks);
  ASSERT_TRUE(result.errors.empty()) << describe(result.errors);
  const std::vector<int>& layers = result.scenario.layout.split_list;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 12);
  EXPECT_GT(layers[0] + layers[2], layers[1] + layers[3]) << "the first GPU is the faster one";
  EXPECT_NE(result.scenario.resolved.find("split: balanced"), std::string::npos);
}

// A head as long as several layers: the rank that has it holds fewer of them.
TEST_F(BalancedStages, OfSeveralChunksOnLikeGpusMakeUpForTheHead) {
  const std::string alike = "model: {family: llama, layers: 12, hidden: 64, ffn: 192, heads: 8, vocab: 65536, sequence: 128}\n"
                            "cluster: {machine: a100-80gb, nodes: 1, gpus_per_node: 2}\n" + two_chunks;
  const Scenario scenario = folder().load(alike).scenario;
  const std::vector<int>& layers = scenario.layout.split_list;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 12);
  EXPECT_GT(layers[0] + layers[2], layers[1] + layers[3]);
}

// The tensor groups of the first stage send through a port with a hundredth of its bandwidth.
TEST_F(BalancedStages, AreNotMovedBySlowPorts) {
  const std::string sound = "model: llama-3.1-8b\nlayout: {tensor: 8, pipeline: 2, chunks: 2, split: balanced}\n"
                            "schedule: {name: interleaved-1f1b, global_batch: 8}\n"
                            "cluster: {machine: h100-80gb, nodes: 2, gpus_per_node: 8";
  const LoadResult with = folder().load(sound + ", slow_links: [{node: 0, fabric: 0, bandwidth: 0.01}]}\n"),
                   without = folder().load(sound + "}\n");
  ASSERT_TRUE(with.errors.empty()) << describe(with.errors);
  EXPECT_FALSE(with.scenario.layout.split_list.empty());
  EXPECT_EQ(with.scenario.layout.split_list, without.scenario.layout.split_list);
}

}  // namespace
}  // namespace slipway
