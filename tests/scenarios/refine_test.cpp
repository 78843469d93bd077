// Orders of nodes and splits of layers on uneven clusters, against every order and split and against clusters without
// degradation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "scenarios/language/check_scenario.h"
#include "scenarios/search/memory_changes.h"
#include "scenarios/search/refine.h"
#include "scenarios/search/search.h"
#include "schedules/bound/balanced_split.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {

namespace {

class Refined : public testing::Test {
 protected:
  Scenario scenario(const std::string& cluster, const std::string& more, int layers = 8) {
    folder_.write("fast.yaml", machine("fast", "4 TFLOP/s"));
    folder_.write("slow.yaml", machine("slow", "1 TFLOP/s"));
    const LoadResult loaded = folder_.load("model: {family: llama, layers: " + std::to_string(layers) +
                                           ", hidden: 64, ffn: 192, heads: 8, vocab: 256, sequence: 128}\ncluster:\n" +
                                           cluster + "\nschedule: {global_batch: 8}\n" + more);
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    return loaded.scenario;
  }
  static Step choice_of(const Scenario& scenario) { return scenario.step; }
  static double seconds(const Scenario& scenario, std::vector<int> layers, std::vector<int> nodes) {
    Step choice = choice_of(scenario);
    if (!layers.empty()) choice.layout.split = SplitKind::list, choice.layout.split_list = std::move(layers);
    choice.layout.placement = std::move(nodes);
    return price_layout(scenario, choice).step_time_s;
  }

 private:
  static std::string machine(const std::string& name, const std::string& peak) {
    return "name: " + name + "\nmemory_bytes: 16 GB\npeak_flops: {float32: " + peak + ", bfloat16: " + peak +
           "}\nmemory_bandwidth: 500 GB/s\nnetwork_link: {name: wire, bandwidth: 1 GB/s, latency: 5 us}\n";
  }
  ScenarioFolder folder_;
};

// Calls visit for every list of layers in which each stage between the first and the last has at least one.
template <class Visit>
void each_split(int stages, int layers, const Visit& visit, std::vector<int> split = {}) {
  if (std::ssize(split) + 1 == stages) {
    split.push_back(layers - std::accumulate(split.begin(), split.end(), 0));
    return visit(split);
  }
  const int left = layers - std::accumulate(split.begin(), split.end(), 0);
  for (int n = split.empty() ? 0 : 1; n <= left; ++n) {
    split.push_back(n);
    each_split(stages, layers, visit, split);
    split.pop_back();
  }
}

const SearchOptions options_of_two = {.best = 10, .memory_share = 1, .workers = 2, .progress = {}, .interrupted = {}};

TEST_F(Refined, FindsTheBestOfAllOrdersOnAWeakPair) {
  const Scenario one = scenario(
      "  {machine: ./fast.yaml, nodes: 4, gpus_per_node: 1, link_factors: [{nodes: [1, 2], factor: 0.02}, "
      "{nodes: [0, 3], "
      "factor: 0.1}]}",
      "layout: {pipeline: 4}");
  std::vector<int> nodes{0, 1, 2, 3};
  double best = 1e300;
  const double identity = seconds(one, {}, nodes);
  do best = std::min(best, seconds(one, {}, nodes));
  while (std::next_permutation(nodes.begin(), nodes.end()));
  const Refinement found = refined(one, price_layout(one, choice_of(one)), false, true, options_of_two);
  EXPECT_TRUE(found.exhaustive);
  EXPECT_EQ(found.row.step_time_s, best);
  EXPECT_LT(best, 0.9 * identity);
}

TEST_F(Refined, FindsTheBestOfAllSplitsAndGroupOrders) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 1, gpus_per_node: 1}, {machine: ./fast.yaml, nodes: 1, "
      "gpus_per_node: 1}]",
      "layout: {pipeline: 2}");
  double best = 1e300;
  for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {1, 0}})
    for (int first = 0; first <= 8; ++first) best = std::min(best, seconds(one, {first, 8 - first}, nodes));
  const Refinement found = refined(one, price_layout(one, choice_of(one)), true, true, options_of_two);
  EXPECT_TRUE(found.exhaustive);
  EXPECT_EQ(found.row.step_time_s, best);
  EXPECT_LT(best, 0.8 * seconds(one, {}, {}));
  EXPECT_LE(found.row.bound_s, found.row.step_time_s);
}

// Three nodes of two kinds and a weak pair: every order, also of alike nodes, with every split.
TEST_F(Refined, FindsTheBestOfAllSplitsInAllOrdersOnUnequalNodesWithAWeakPair) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 1, gpus_per_node: 1}, {machine: ./fast.yaml, nodes: 2, "
      "gpus_per_node: 1}]\n"
      "  link_factors: [{nodes: [0, 1], factor: 0.05}]",
      "layout: {pipeline: 3}", 6);
  std::vector<int> nodes{0, 1, 2};
  double best = 1e300;
  do
    for (int first = 0; first <= 6; ++first)
      for (int second = 1; first + second <= 6; ++second)
        best = std::min(best, seconds(one, {first, second, 6 - first - second}, nodes));
  while (std::next_permutation(nodes.begin(), nodes.end()));
  const Refinement found = refined(one, price_layout(one, choice_of(one)), true, true, options_of_two);
  EXPECT_TRUE(found.exhaustive);
  EXPECT_EQ(found.row.step_time_s, best);
  EXPECT_LT(found.simulated, 126 / 2);                 // bounds saved the others
  EXPECT_EQ(found.row.choice.layout.placement[1], 2);  // so 0 and 1, the weak pair, are no neighbours
}

// As much memory as the even split needs. The faster splits, with more layers on the fast GPU, need more.
TEST_F(Refined, CountsNoSimulationOfASplitThatDoesNotFit) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 1, gpus_per_node: 1}, {machine: ./fast.yaml, nodes: 1, "
      "gpus_per_node: 1}]",
      "layout: {pipeline: 2}");
  const PricedLayout even = price_layout(one, choice_of(one));
  SearchOptions options = options_of_two;
  options.memory_share = even.memory_share;
  int too_large = 0, slower = 0;
  each_split(2, 8, [&](const std::vector<int>& layers) {
    Step choice = choice_of(one);
    choice.layout.split = SplitKind::list, choice.layout.split_list = layers;
    const PricedLayout row = price_layout(one, choice);
    (row.memory_share > options.memory_share ? too_large : slower) += row.step_time_s != even.step_time_s ? 1 : 0;
  });
  ASSERT_GT(too_large, 0);
  const Refinement found = refined(one, even, true, false, options);
  EXPECT_TRUE(found.exhaustive);
  EXPECT_LE(found.simulated, slower);
  EXPECT_EQ(found.row.step_time_s, even.step_time_s);
}

// The best of every layout in every order with every split, by enumeration; plan finds it from two starts.
TEST_F(Refined, PlanFindsTheBestOfAllLayoutsSplitsAndOrders) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 1, gpus_per_node: 2}, {machine: ./fast.yaml, nodes: 1, "
      "gpus_per_node: 2}]",
      "layout: {pipeline: 2}", 4);
  const std::vector<std::string> kept{"schedule.name", "schedule.micro_batch", "schedule.recompute",
                                      "layout.chunks", "layout.zero",          "layout.context"};
  const SearchSpace space = search_space(one, kept);
  double best = 1e300;
  each_layout(one, space, [&](const Step& choice) {
    for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {1, 0}})
      each_split(choice.layout.pipeline, 4, [&](const std::vector<int>& layers) {
        Step each = choice;
        each.layout.split = SplitKind::list, each.layout.split_list = layers, each.layout.placement = nodes;
        best = std::min(best, price_layout(one, each).step_time_s);
      });
  });
  EXPECT_NEAR(search_layouts(one, space, options_of_two).best.front().step_time_s, best, 1e-9 * best);
}

TEST_F(Refined, DoesNotDependOnTheNumberOfWorkers) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 2, gpus_per_node: 1}, {machine: ./fast.yaml, nodes: 2, "
      "gpus_per_node: 1}]",
      "layout: {pipeline: 4}", 16);
  SearchOptions options = options_of_two;
  const PricedLayout row = price_layout(one, choice_of(one));
  options.workers = 1;
  const Refinement alone = refined(one, row, true, true, options);
  options.workers = 3;
  const Refinement three = refined(one, row, true, true, options);
  EXPECT_FALSE(alone.exhaustive);
  EXPECT_EQ(alone.simulated, three.simulated);
  EXPECT_EQ(overrides_of(alone.row.choice), overrides_of(three.row.choice));
}

TEST_F(Refined, ClimbsAroundAWeakPairWhereOrdersAreTooManyToTry) {
  const std::string nodes = "  {machine: ./fast.yaml, nodes: 8, gpus_per_node: 1";
  const Scenario weak = scenario(nodes + ", link_factors: [{nodes: [3, 4], factor: 0.01}]}", "layout: {pipeline: 8}");
  const double sound = seconds(scenario(nodes + "}", "layout: {pipeline: 8}"), {}, {});
  EXPECT_GT(seconds(weak, {}, {}), 1.5 * sound);
  const Refinement found = refined(weak, price_layout(weak, choice_of(weak)), false, true, options_of_two);
  EXPECT_FALSE(found.exhaustive);
  EXPECT_NEAR(found.row.step_time_s, sound, 1e-9 * sound);
  EXPECT_EQ(refined(weak, price_layout(weak, choice_of(weak)), false, true, options_of_two).row.choice.layout.placement,
            found.row.choice.layout.placement);
}

TEST_F(Refined, LeavesAloneWhatIsToBeKept) {
  const Scenario one =
      scenario("  {machine: ./fast.yaml, nodes: 2, gpus_per_node: 1, link_factors: [{nodes: [0, 1], factor: 0.1}]}",
               "layout: {pipeline: 2}");
  const Refinement kept = refined(one, price_layout(one, choice_of(one)), false, false, options_of_two);
  EXPECT_TRUE(kept.row.choice.layout.placement.empty());
  EXPECT_EQ(kept.row.choice.layout.split, SplitKind::even);
}

TEST_F(Refined, PlanSearchesThemAndItsAnswerLoads) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 2, gpus_per_node: 1}, {machine: ./fast.yaml, nodes: 2, "
      "gpus_per_node: 1}]",
      "layout: {pipeline: 4}");
  const SearchResult result =
      search_layouts(one, search_space(one, {"layout.pipeline", "layout.tensor", "layout.data"}), options_of_two);
  ASSERT_FALSE(result.best.empty());
  EXPECT_GT(result.refinements, 0);
  EXPECT_LT(result.best.front().step_time_s, result.unrefined_s);
  EXPECT_THAT(overrides_of(result.best.front().choice), testing::Contains(testing::HasSubstr("layout.split=[")));
  const Scenario winner = with_layout(one, result.best.front().choice);
  EXPECT_NEAR(price_layout(winner, choice_of(winner)).step_time_s, result.best.front().step_time_s, 1e-12);
}

TEST(UnevenClusters, AreThoseOfSeveralMachinesOrWeakPairs) {
  Cluster cluster;
  cluster.groups.resize(2);
  EXPECT_FALSE(is_uneven(cluster));
  cluster.groups[1].machine.name = "other";
  EXPECT_TRUE(is_uneven(cluster));
  cluster.groups.resize(1);
  cluster.weak_pairs = {{0, 1, 0.5}};
  EXPECT_TRUE(is_uneven(cluster));
}

}  // namespace

// layout.split balanced where GPUs are short of memory: against the verdict on every split.

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
                        "nodes: 1, gpus_per_node: 1}]}\n" +
                        more);
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
           "}\nmemory_bandwidth: 500 GB/s\ncores: 1\n"  // processors, without the libraries of GPUs
           "network_link: {name: wire, bandwidth: 10 GB/s, latency: 5 us}\n";
  }
  ScenarioFolder folder_;
};

const std::string two_stages = "layout: {pipeline: 2, split: balanced}\nschedule: {global_batch: 8}\n";

Scenario with_split(const Scenario& scenario, std::vector<int> layers) {
  Scenario one = scenario;
  one.step.layout.split = SplitKind::list, one.step.layout.split_list = std::move(layers);
  return one;
}

// Seconds of the slowest of two ranks with a stage each.
double slowest(const Scenario& scenario, int first) {
  const SplitLoads loads = split_loads(scenario.step, priced_cluster(scenario));
  const auto sum = [](const std::vector<double>& row, int from, int to) {
    return std::accumulate(row.begin() + from, row.begin() + to, 0.0);
  };
  const int blocks = static_cast<int>(loads.seconds[0].size());
  return std::max(sum(loads.seconds[0], 0, first + 1), sum(loads.seconds[1], first + 1, blocks));
}

TEST_F(BalancedStages, HoldWhatFitsOfEverySplitTheFastest) {
  const Scenario roomy = scenario(1e4, 1e4, two_stages);
  EXPECT_GE(roomy.step.layout.split_list.at(0), 8);
  const std::vector<StageNeed> needs = stage_needs(roomy);
  int moved = 0, nothing = 0;
  for (const double fast : {1.01, 0.9, 0.8, 0.6, 0.4})
    for (const double slow : {1.01, 1.5, 3.0}) {
      const Scenario short_of =
          scenario(fast * needs[0].odds.recommended() / 1e6, slow * needs[1].odds.recommended() / 1e6, two_stages);
      double best = 1e300;
      for (int n = 0; n <= 12; ++n)
        if (verdict_of(with_split(short_of, {n, 12 - n})).fits_cautious) best = std::min(best, slowest(short_of, n));
      const int found = short_of.step.layout.split_list.at(0);
      if (best < 1e300) {
        EXPECT_TRUE(verdict_of(short_of).fits_cautious) << fast << ' ' << slow;
        EXPECT_DOUBLE_EQ(slowest(short_of, found), best) << fast << ' ' << slow;
        moved += found < roomy.step.layout.split_list[0] ? 1 : 0;
      } else {
        EXPECT_EQ(short_of.step.layout.split_list, roomy.step.layout.split_list)
            << "nothing fits: as if memory had no say";
        ++nothing;
      }
    }
  EXPECT_GT(moved, 3);
  EXPECT_GT(nothing, 1);
}

// The search has only a bound of memory, so it also tries splits with room to spare.
TEST_F(BalancedStages, ArePlannedToFitWhereTheFastestSplitDoesNot) {
  const Scenario roomy = scenario(1e4, 1e4, two_stages);
  const std::vector<StageNeed> needs = stage_needs(roomy);
  for (const double fast : {0.9, 0.7}) {
    const Scenario short_of =
        scenario(fast * needs[0].odds.recommended() / 1e6, 3 * needs[1].odds.recommended() / 1e6, two_stages);
    const std::vector<std::string> kept{"layout.pipeline",      "layout.data",        "layout.zero",    "layout.chunks",
                                        "schedule.micro_batch", "schedule.recompute", "layout.context", "layout.tensor",
                                        "schedule.name",        "layout.placement"};
    const SearchOptions options{.best = 1, .memory_share = 1, .workers = 2, .progress = {}, .interrupted = {}};
    const SearchResult free = search_layouts(short_of, search_space(short_of, kept), options);
    ASSERT_FALSE(free.best.empty()) << fast;
    EXPECT_LE(free.best.front().memory_share, 1);
    double best = 1e300;
    for (int n = 0; n <= 12; ++n) {
      Step choice = free.best.front().choice;
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

const std::string two_chunks =
    "layout: {pipeline: 2, chunks: 2, split: balanced}\nschedule: {name: interleaved-1f1b, global_batch: 8}\n";

TEST_F(BalancedStages, OfSeveralChunksBalanceTheRanks) {
  const LoadResult result = loaded(1e4, 1e4, two_chunks);
  ASSERT_TRUE(result.errors.empty()) << describe(result.errors);
  const std::vector<int>& layers = result.scenario.step.layout.split_list;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 12);
  EXPECT_GT(layers[0] + layers[2], layers[1] + layers[3]) << "the first GPU is the faster one";
  EXPECT_NE(result.scenario.resolved.find("split: balanced"), std::string::npos);
}

// A head as long as several layers: the rank that has it holds fewer of them.
TEST_F(BalancedStages, OfSeveralChunksOnLikeGpusMakeUpForTheHead) {
  const std::string alike =
      "model: {family: llama, layers: 12, hidden: 64, ffn: 192, heads: 8, vocab: 65536, sequence: 128}\n"
      "cluster: {machine: a100-80gb, nodes: 1, gpus_per_node: 2}\n" +
      two_chunks;
  const Scenario scenario = folder().load(alike).scenario;
  const std::vector<int>& layers = scenario.step.layout.split_list;
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 12);
  EXPECT_GT(layers[0] + layers[2], layers[1] + layers[3]);
}

// The tensor groups of the first stage send through a port with a hundredth of its bandwidth.
TEST_F(BalancedStages, AreNotMovedBySlowPorts) {
  const std::string sound =
      "model: llama-3.1-8b\nlayout: {tensor: 8, pipeline: 2, chunks: 2, split: balanced}\n"
      "schedule: {name: interleaved-1f1b, global_batch: 8}\n"
      "cluster: {machine: h100-80gb, nodes: 2, gpus_per_node: 8";
  const LoadResult with = folder().load(sound + ", slow_links: [{node: 0, fabric: 0, bandwidth: 0.01}]}\n"),
                   without = folder().load(sound + "}\n");
  ASSERT_TRUE(with.errors.empty()) << describe(with.errors);
  EXPECT_FALSE(with.scenario.step.layout.split_list.empty());
  EXPECT_EQ(with.scenario.step.layout.split_list, without.scenario.step.layout.split_list);
}

}  // namespace

}  // namespace slipway::test
