// Orders of nodes and splits of layers on uneven clusters: against every order and split, and against sound
// clusters.
#include "scenarios/search/refine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tests/scenario_file.h"

namespace slipway {
namespace {

class Refined : public testing::Test {
 protected:
  Scenario scenario(const std::string& cluster, const std::string& more, int layers = 8) {
    folder_.write("fast.yaml", machine("fast", "4 TFLOP/s"));
    folder_.write("slow.yaml", machine("slow", "1 TFLOP/s"));
    const LoadResult loaded =
        folder_.load("model: {family: llama, layers: " + std::to_string(layers) +
                     ", hidden: 64, ffn: 192, heads: 8, vocab: 256, sequence: 128}\ncluster:\n" + cluster +
                     "\nschedule: {global_batch: 8}\n" + more);
    EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
    return loaded.scenario;
  }
  static LayoutChoice choice_of(const Scenario& scenario) {
    return {scenario.layout, schedule_named(scenario.schedule.name), scenario.schedule.micro_batch,
            scenario.schedule.recompute};
  }
  static double seconds(const Scenario& scenario, std::vector<int> layers, std::vector<int> nodes) {
    LayoutChoice choice = choice_of(scenario);
    if (!layers.empty())
      choice.layout.split = SplitKind::list, choice.layout.split_list = std::move(layers);
    choice.layout.placement = std::move(nodes);
    return price_layout(scenario, choice).step_time_s;
  }

 private:
  static std::string machine(const std::string& name, const std::string& peak) {
    return "name: " + name + "\nmemory_bytes: 16 GB\npeak_flops: {float32: " + peak +
           ", bfloat16: " + peak +
           "}\nmemory_bandwidth: 500 GB/s\nnetwork_link: {name: wire, bandwidth: 1 GB/s, latency: 5 us}\n";
  }
  ScenarioFolder folder_;
};

// Calls visit for every list of layers in which a stage between the first and the last has one at least.
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

const SearchOptions options_of_two = {
    .best = 10, .memory_share = 1, .workers = 2, .progress = {}, .interrupted = {}};

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

// Three nodes of two kinds and a weak pair: every order, those of alike nodes too, with every split.
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

// As much memory as the even split needs: the faster ones, with more layers on the fast GPU, need more.
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
    LayoutChoice choice = choice_of(one);
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

// The best of every layout in every order with every split, by enumeration; plan finds it from two ends.
TEST_F(Refined, PlanFindsTheBestOfAllLayoutsSplitsAndOrders) {
  const Scenario one = scenario(
      "  groups: [{machine: ./slow.yaml, nodes: 1, gpus_per_node: 2}, {machine: ./fast.yaml, nodes: 1, "
      "gpus_per_node: 2}]",
      "layout: {pipeline: 2}", 4);
  const std::vector<std::string> kept{"schedule.name", "schedule.micro_batch", "schedule.recompute",
                                      "layout.chunks", "layout.zero",          "layout.context"};
  const SearchSpace space = search_space(one, kept);
  double best = 1e300;
  each_layout(one, space, [&](const LayoutChoice& choice) {
    for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, {1, 0}})
      each_split(choice.layout.pipeline, 4, [&](const std::vector<int>& layers) {
        LayoutChoice each = choice;
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
  const Scenario weak =
      scenario(nodes + ", link_factors: [{nodes: [3, 4], factor: 0.01}]}", "layout: {pipeline: 8}");
  const double sound = seconds(scenario(nodes + "}", "layout: {pipeline: 8}"), {}, {});
  EXPECT_GT(seconds(weak, {}, {}), 1.5 * sound);
  const Refinement found = refined(weak, price_layout(weak, choice_of(weak)), false, true, options_of_two);
  EXPECT_FALSE(found.exhaustive);
  EXPECT_NEAR(found.row.step_time_s, sound, 1e-9 * sound);
  EXPECT_EQ(refined(weak, price_layout(weak, choice_of(weak)), false, true, options_of_two)
                .row.choice.layout.placement,
            found.row.choice.layout.placement);
}

TEST_F(Refined, LeavesAloneWhatIsToBeKept) {
  const Scenario one = scenario(
      "  {machine: ./fast.yaml, nodes: 2, gpus_per_node: 1, link_factors: [{nodes: [0, 1], factor: 0.1}]}",
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
  const SearchResult result = search_layouts(
      one, search_space(one, {"layout.pipeline", "layout.tensor", "layout.data"}), options_of_two);
  ASSERT_FALSE(result.best.empty());
  EXPECT_GT(result.refinements, 0);
  EXPECT_LT(result.best.front().step_time_s, result.unrefined_s);
  EXPECT_THAT(overrides_of(result.best.front().choice),
              testing::Contains(testing::HasSubstr("layout.split=[")));
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
}  // namespace slipway
