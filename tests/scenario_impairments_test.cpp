// cluster.stragglers, slow_links and link_factors and layout.placement: what the loader makes of them, and its errors.
#include <gmock/gmock.h>

#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;

class Impaired : public testing::Test {
 protected:
  // The sound scenario, two nodes of four ranks.
  LoadResult load(const std::vector<std::string>& overrides) {
    folder_.write("box.yaml", test_machine());
    return folder_.load(sound_scenario(), overrides);
  }
  Cluster cluster(const std::vector<std::string>& overrides) {
    const LoadResult result = load(overrides);
    EXPECT_TRUE(result.errors.empty()) << describe(result.errors);
    return result.scenario.cluster;
  }
  std::string error(const std::vector<std::string>& overrides) {
    const LoadResult result = load(overrides);
    EXPECT_EQ(result.errors.size(), 1U) << describe(result.errors);
    return describe(result.errors);
  }

 private:
  ScenarioFolder folder_;
};

TEST_F(Impaired, EntriesOfOneGpuMultiplyAndOthersStayAtOne) {
  const Cluster one = cluster({"cluster.stragglers=[{node: 1, slowdown: 1.5}, {node: 1, gpu: 1, slowdown: 2}]"});
  EXPECT_THAT(one.impairments.slowdown, ElementsAre(1, 1, 1, 1, 1.5, 3, 1.5, 1.5));
  EXPECT_THAT(cluster({"cluster.stragglers=[{gpu: 0, slowdown: 1.5}]"}).impairments.slowdown,
              ElementsAre(1.5, 1, 1, 1, 1.5, 1, 1, 1));
}

TEST_F(Impaired, ADrawDependsOnItsSeedAndElseOnTheRuns) {
  const auto drawn = [&](const std::string& more, const std::string& seed) {
    return cluster({"cluster.stragglers=[{sigma: 0.2" + more + "}]", "run.seed=" + seed}).impairments.slowdown;
  };
  EXPECT_EQ(drawn("", "3"), drawn("", "3"));
  EXPECT_NE(drawn("", "3"), drawn("", "4"));
  EXPECT_EQ(drawn(", seed: 9", "3"), drawn(", seed: 9", "4"));
  EXPECT_EQ(drawn(", seed: 9", "3"), drawn("", "9"));
  EXPECT_THAT(drawn("", "3"), Each(Ge(1)));  // half-normal
  EXPECT_NE(drawn(", distribution: lognormal", "3"), drawn("", "3"));
}

TEST_F(Impaired, ASlowLinkIsAPortOfTheNetworkUnlessAFabricIsNamed) {
  const Cluster one = cluster({"cluster.slow_links=[{node: 1, bandwidth: 0.5}, {node: 0, gpu: 1, fabric: 0, "
                               "period: 10 ms, down: 0.2}]"});
  ASSERT_EQ(one.impairments.ports.size(), 2U);
  const SlowPort& network = one.impairments.ports[0];
  EXPECT_EQ(one.fabrics[static_cast<std::size_t>(network.fabric)].scope, Fabric::Scope::cluster);
  EXPECT_EQ(network.share, 0.5);
  EXPECT_EQ(network.gpu, -1);
  const SlowPort& bus = one.impairments.ports[1];
  EXPECT_EQ(one.fabrics[static_cast<std::size_t>(bus.fabric)].scope, Fabric::Scope::node);
  EXPECT_EQ(bus.gpu, 1);
  EXPECT_EQ(bus.period, 0.01);
  EXPECT_EQ(bus.down, 0.2);
}

TEST_F(Impaired, PlacementIsTheOrderOfNodes) {
  const Cluster one = cluster({"layout.placement=[1, 0]", "cluster.link_factors=[{nodes: [0, 1], factor: 0.5}]"});
  EXPECT_THAT(one.gpu_of_rank, ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_EQ(place_of(one, 0).node, 1);
  EXPECT_EQ(pair_share(one, 0, 1), 0.5);
}

TEST_F(Impaired, TheResolvedTextLoadsToTheSameCluster) {
  const LoadResult first = load({"layout.placement=[1, 0]", "cluster.stragglers=[{sigma: 0.2}]", "run.seed=5",
                                 "cluster.slow_links=[{node: 1, bandwidth: 0.5}]"});
  ASSERT_TRUE(first.errors.empty()) << describe(first.errors);
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult second = folder.load(first.scenario.resolved);
  ASSERT_TRUE(second.errors.empty()) << describe(second.errors);
  EXPECT_EQ(first.scenario.cluster.impairments.slowdown, second.scenario.cluster.impairments.slowdown);
  EXPECT_EQ(first.scenario.cluster.gpu_of_rank, second.scenario.cluster.gpu_of_rank);
  EXPECT_EQ(second.scenario.cluster.impairments.ports.size(), 1U);
}

TEST_F(Impaired, MistakesAreOneErrorEachWithPlaceAndRemedy) {
  EXPECT_THAT(error({"cluster.stragglers=[{node: 2}]"}),
              AllOf(HasSubstr("cluster.stragglers.0.node: the cluster has no node 2; allowed: 0 to 1")));
  EXPECT_THAT(error({"cluster.stragglers=[{node: 1, gpu: 4}]"}),
              HasSubstr("cluster.stragglers.0.gpu: node 1 has no GPU 4; allowed: 0 to 3"));
  for (const std::string slowdown : {"0", "0.5"})  // a faster GPU is no straggler
    EXPECT_THAT(error({"cluster.stragglers=[{slowdown: " + slowdown + "}]"}),
                HasSubstr("cluster.stragglers.0.slowdown: " + slowdown + " is out of range"));
  EXPECT_THAT(error({"cluster.slow_links=[{bandwidth: 0.5}]"}), HasSubstr("cluster.slow_links.0.node"));
  EXPECT_THAT(error({"cluster.slow_links=[{node: 0, down: 0.5}]"}),
              HasSubstr("cluster.slow_links.0.period: period and down belong together"));
  EXPECT_THAT(error({"cluster.slow_links=[{node: 0, period: 1 s, down: 0.2}, {node: 0, period: 2 s, down: 0.5}]"}),
              HasSubstr("cluster.slow_links.1.down: an earlier entry lets a port of node 0 in fabric 1 flap already"));
  EXPECT_THAT(error({"cluster.slow_links=[{node: 0, fabric: 7}]"}),
              HasSubstr("cluster.slow_links.0.fabric: node 0 has no port in fabric 7; allowed: indices from 0 to 1"));
  EXPECT_THAT(error({"cluster.nodes=1", "cluster.gpus_per_node=1", "layout={}", "cluster.slow_links=[{node: 0, bandwidth: 0.5}]"}),
              HasSubstr("node 0 has no port"));
  EXPECT_THAT(error({"cluster.stragglers.0.slowdown=2"}),
              HasSubstr("cluster.stragglers has no items yet; give the list, for example --set 'cluster.stragglers=[{slowdown: 2}]'"));
  EXPECT_THAT(error({"cluster.link_factors=[{nodes: [1, 1], factor: 0.5}]"}), HasSubstr("these are no two nodes"));
  EXPECT_THAT(error({"layout.placement=[0, 0]"}), HasSubstr("layout.placement: node 0 is named twice; allowed: each of 0 to 1"));
  EXPECT_THAT(error({"layout.placement=[1]"}), HasSubstr("layout.placement: it names 1 of 2 nodes"));
  EXPECT_THAT(error({"layout.placement=[1, 2]"}), HasSubstr("layout.placement: there is no node 2"));
}

}  // namespace
}  // namespace slipway
