// cluster.fabrics: speeds from the machines' links, topologies, and what does not fit.
#include <gmock/gmock.h>

#include "models/machine/topology.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

class ScenarioFabrics : public testing::Test {
 protected:
  ScenarioFabrics() { folder.write("box.yaml", test_machine()); }
  // The sound scenario: two nodes of four.
  LoadResult with(const std::string& fabrics) { return folder.load(sound_scenario(), {"cluster.fabrics=" + fabrics}); }
  Cluster cluster(const std::string& fabrics) {
    const LoadResult result = with(fabrics);
    EXPECT_EQ(describe(result.errors), "");
    return result.scenario.cluster;
  }
  ScenarioError error(const std::string& fabrics) {
    const LoadResult result = with(fabrics);
    EXPECT_EQ(result.errors.size(), 1U) << describe(result.errors);
    return result.errors.empty() ? ScenarioError{} : result.errors[0];
  }
  ScenarioFolder folder;
};

TEST_F(ScenarioFabrics, AreAsFastAsTheMachinesLinksUnlessTheySaySo) {
  const Cluster c = cluster("[{scope: node}, {scope: cluster, bandwidth: 2 GB/s}]");
  ASSERT_EQ(c.fabrics.size(), 2U);
  EXPECT_EQ(c.fabrics[0].bandwidth, 10e9);
  EXPECT_EQ(c.fabrics[0].latency, 1e-6);
  EXPECT_EQ(c.fabrics[1].bandwidth, 2e9);
  EXPECT_EQ(c.fabrics[1].latency, 5e-6);
  EXPECT_EQ(c.fabrics[1].topology, nullptr);
  EXPECT_FALSE(c.fabrics[0].own);
  EXPECT_TRUE(c.fabrics[1].own);
}

TEST_F(ScenarioFabrics, HaveATopologyWithItsNumbers) {
  const Cluster c = cluster(
      "[{scope: node, topology: {kind: pcie, shape: [2], global_bandwidth: 3 GB/s}}, {scope: cluster, "
      "topology: "
      "{kind: fat-tree, shape: [4, 2], uplinks: [2], routing: static, hop_latency: 1 us, link_bandwidth: 4 "
      "GB/s}}]");
  ASSERT_EQ(c.fabrics.size(), 2U);
  EXPECT_EQ(c.fabrics[0].topology, topology_named("pcie"));
  EXPECT_EQ(global_bandwidth(c.fabrics[0]), 3e9);
  EXPECT_EQ(link_bandwidth(c.fabrics[0]), 10e9);
  const Fabric& tree = c.fabrics[1];
  EXPECT_EQ(counts_of(tree, "shape"), (std::vector<int>{4, 2}));
  EXPECT_EQ(counts_of(tree, "uplinks"), std::vector<int>{2});
  EXPECT_EQ(number_of(tree, "hop_latency"), 1e-6);
  EXPECT_EQ(link_bandwidth(tree), 4e9);
  EXPECT_EQ(word_of(tree, "routing"), "static");
}

TEST_F(ScenarioFabrics, TakeATopologysNameAlone) {
  const Cluster c = cluster("[{scope: node}, {scope: cluster, topology: rail-optimised}]");
  EXPECT_EQ(c.fabrics[1].topology, topology_named("rail-optimised"));
  EXPECT_EQ(word_of(c.fabrics[1], "crossing"), "node");
  EXPECT_EQ(word_of(cluster("[{scope: cluster, topology: rail-optimised}]").fabrics[0], "crossing"), "core");
  EXPECT_EQ(cluster("[{scope: node}, {scope: cluster, topology: star}]").fabrics[1].topology, nullptr);
}

TEST_F(ScenarioFabrics, ResolvedTextLoadsToTheSameLinks) {
  const LoadResult first = with(
      "[{scope: node}, {scope: cluster, topology: {kind: rail-optimised, shape: [1], oversubscription: 2, "
      "crossing: core}}]");
  const LoadResult again = folder.load(first.scenario.resolved);
  EXPECT_EQ(describe(again.errors), "");
  EXPECT_EQ(first.scenario.resolved, again.scenario.resolved);
  EXPECT_EQ(number_of(again.scenario.cluster.fabrics[1], "oversubscription"), 2);
  EXPECT_EQ(word_of(again.scenario.cluster.fabrics[1], "crossing"), "core");
}

TEST_F(ScenarioFabrics, SayWhichNumberDoesNotFitAndWhatWould) {
  const ScenarioError sides = error("[{scope: node}, {scope: cluster, topology: {kind: torus, shape: [3, 2]}}]");
  EXPECT_EQ(sides.key, "cluster.fabrics.1.topology.shape");
  EXPECT_THAT(sides.message, HasSubstr("multiply to 6, but the fabric has 8 ports"));
  EXPECT_THAT(sides.remedy, HasSubstr("multiply to 8"));
  const ScenarioError both = error(
      "[{scope: node}, {scope: cluster, topology: {kind: fat-tree, shape: [4], uplinks: [2], "
      "oversubscription: 2}}]");
  EXPECT_EQ(both.key, "cluster.fabrics.1.topology.oversubscription");
  const ScenarioError routing =
      error("[{scope: node}, {scope: cluster, topology: {kind: fat-tree, shape: [4], routing: static}}]");
  EXPECT_EQ(routing.key, "cluster.fabrics.1.topology.routing");
  const ScenarioError crossing = error("[{scope: cluster, topology: {kind: rail-optimised, crossing: node}}]");
  EXPECT_EQ(crossing.key, "cluster.fabrics.0.topology.crossing");
  EXPECT_THAT(crossing.remedy, HasSubstr("crossing: core"));
  const ScenarioError star = error("[{scope: node}, {scope: cluster, topology: {kind: star, shape: [4]}}]");
  EXPECT_EQ(star.key, "cluster.fabrics.1.topology.shape");
  const ScenarioError scope = error("[{scope: node}, {scope: cluster, topology: {kind: pcie, shape: [4]}}]");
  EXPECT_EQ(scope.key, "cluster.fabrics.1.topology.kind");
  EXPECT_THAT(error("[{scope: node}, {scope: cluster, topology: dragonfli}]").remedy, HasSubstr("'dragonfly'"));
}

// The least that a kind of this name needs, on the two nodes of four.
std::string least_of(const Topology& topology) {
  const std::string shape = topology.name == "torus" ? "[8]" : topology.name == "dragonfly" ? "[2, 2]" : "[4]";
  const bool inside = topology.name == "pcie";
  return "[{scope: node" + std::string(inside ? ", topology: {kind: pcie, shape: [4]KEY}" : "") + "}, {scope: cluster" +
         (inside ? "" : ", topology: {kind: " + topology.name + ", shape: " + shape + "KEY}") + "}]";
}

std::string with_key(std::string fabrics, const std::string& key) {
  return fabrics.replace(fabrics.find("KEY"), 3, key);
}

TEST_F(ScenarioFabrics, RefuseEveryParameterThatTheirTopologyDoesNotDeclare) {
  int refused = 0, kinds = 0;
  for (const Topology& topology : all_topologies()) {
    const std::string fabrics = least_of(topology);
    if (!with(with_key(fabrics, "")).errors.empty()) continue;  // it needs more than a shape
    ++kinds;
    for (const Topology& other : all_topologies())
      for (const TopologyParameter& each : other.parameters) {
        if (parameter_named(topology, each.name) != nullptr) continue;
        const std::string value = each.words != nullptr                            ? std::string(each.words()[0])
                                  : each.kind == TopologyParameter::Kind::integers ? "[2]"
                                                                                   : "2";
        const ScenarioError found = error(with_key(fabrics, ", " + each.name + ": " + value));
        EXPECT_THAT(found.key, testing::EndsWith(".topology." + each.name));
        EXPECT_THAT(found.message, HasSubstr("topology " + topology.name + " has no such parameter; allowed: kind, "));
        for (const TopologyParameter& own : topology.parameters) EXPECT_THAT(found.message, HasSubstr(own.name));
        EXPECT_THAT(found.remedy, HasSubstr(other.name));
        ++refused;
      }
  }
  EXPECT_GE(kinds, 5);
  EXPECT_GE(refused, 16);
  for (const std::string key : {"routing: static", "crossing: node", "global_bandwidth: 1 GB/s"})
    EXPECT_THAT(error("[{scope: node}, {scope: cluster, topology: {kind: star, " + key + "}}]").message,
                HasSubstr("a star has nothing between its ports"));
}

TEST_F(ScenarioFabrics, ResolvedTextHasTheParametersOfItsTopologyAndNoOthers) {
  for (const Topology& topology : all_topologies()) {
    const LoadResult loaded = with(with_key(least_of(topology), ""));
    if (!loaded.errors.empty()) continue;
    const std::string& text = loaded.scenario.resolved;
    const std::string section = text.substr(text.find("topology:"), text.find("\nlayout:") - text.find("topology:"));
    for (const Topology& other : all_topologies())
      for (const TopologyParameter& each : other.parameters) {
        if (each.kind == TopologyParameter::Kind::integers) continue;
        const bool is_own = parameter_named(topology, each.name) != nullptr;
        EXPECT_EQ(section.find(each.name + ":") != std::string::npos, is_own) << topology.name << "\n" << section;
      }
    EXPECT_EQ(folder.load(text).scenario.resolved, text);
  }
}

TEST_F(ScenarioFabrics, NeedASpeedWhereTheMachineHasNone) {
  folder.write("box.yaml",
               "name: box\nmemory_bytes: 16 GB\npeak_flops: {bfloat16: 2 TFLOP/s}\nmemory_bandwidth: 100 GB/s\n"
               "node_link: {name: bus, bandwidth: 10 GB/s, latency: 1 us}\n");
  const ScenarioError none = error("[{scope: node}, {scope: cluster}]");
  EXPECT_EQ(none.key, "cluster.fabrics.1");
  EXPECT_THAT(none.message, HasSubstr("no bandwidth"));
}

class ScenarioCollectives : public ScenarioFabrics {
 protected:
  Algorithm of(const Cluster& cluster, Axis axis) { return cluster.algorithms[static_cast<std::size_t>(axis)]; }
};

TEST_F(ScenarioCollectives, AreRingsButForTheGradientNormUnlessTheScenarioSaysOtherwise) {
  const LoadResult plain = folder.load(sound_scenario());
  for (const Axis axis : {Axis::tensor, Axis::context, Axis::data, Axis::embedding})
    EXPECT_EQ(of(plain.scenario.cluster, axis), Algorithm::ring);
  EXPECT_EQ(of(plain.scenario.cluster, Axis::world), Algorithm::nccl) << "the few bytes of the gradient norm";
  const LoadResult rings = folder.load(sound_scenario(), {"cluster.collectives=ring"});
  EXPECT_EQ(of(rings.scenario.cluster, Axis::world), Algorithm::ring);
  const LoadResult all = folder.load(sound_scenario(), {"cluster.collectives=nccl"});
  EXPECT_EQ(of(all.scenario.cluster, Axis::tensor), Algorithm::nccl);
  EXPECT_EQ(of(all.scenario.cluster, Axis::world), Algorithm::nccl);
}

TEST_F(ScenarioCollectives, AreGloosOnProcessorsWhoseNodesHaveOnePort) {
  folder.write("box.yaml",
               "name: box\nmemory_bytes: 4 GB\ncores: 2\npeak_flops: {bfloat16: 1 GFLOP/s, float32: 1 "
               "GFLOP/s}\nmemory_bandwidth: 10 GB/s\n"
               "node_link: {name: loopback, bandwidth: 2 GB/s, latency: 30 us}\n"
               "network_link: {name: ethernet, bandwidth: 1 GB/s, latency: 60 us}\n");
  const std::vector<std::string> nodes{"cluster.nodes=2", "cluster.gpus_per_node=4"};
  const auto loaded = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), nodes.begin(), nodes.end());
    LoadResult result = folder.load(sound_scenario(), overrides);
    EXPECT_EQ(describe(result.errors), "");
    return result.scenario.cluster;
  };
  const Cluster cluster = loaded({});
  for (const Axis axis : {Axis::tensor, Axis::data, Axis::expert_data, Axis::world})
    EXPECT_EQ(of(cluster, axis), Algorithm::gloo);
  ASSERT_EQ(cluster.fabrics.size(), 2U);
  EXPECT_EQ(cluster.fabrics[0].gpus_per_port, 1) << "inside a node";
  EXPECT_EQ(cluster.fabrics[1].gpus_per_port, 4);
  const Cluster own = loaded({"cluster.fabrics=[{scope: node}, {scope: cluster, bandwidth: 10 MB/s}]"});
  EXPECT_EQ(own.fabrics[0].gpus_per_port, 1);
  EXPECT_EQ(own.fabrics[1].gpus_per_port, 4);
  EXPECT_EQ(loaded({"cluster.fabrics=[{scope: node}, {scope: cluster, gpus_per_port: 2}]"}).fabrics[1].gpus_per_port,
            2);
  EXPECT_EQ(of(loaded({"cluster.collectives=ring"}), Axis::data), Algorithm::ring);
}

TEST_F(ScenarioCollectives, AreOverriddenPerCommunicator) {
  const LoadResult result = folder.load(sound_scenario(), {"cluster.collectives={all: multi-ring, data: tree}",
                                                           "cluster.collectives.world=hierarchical"});
  EXPECT_EQ(describe(result.errors), "");
  EXPECT_EQ(of(result.scenario.cluster, Axis::tensor), Algorithm::multi_ring);
  EXPECT_EQ(of(result.scenario.cluster, Axis::data), Algorithm::tree);
  EXPECT_EQ(of(result.scenario.cluster, Axis::world), Algorithm::hierarchical);
  const LoadResult again = folder.load(result.scenario.resolved);
  EXPECT_EQ(describe(again.errors), "");
  EXPECT_EQ(again.scenario.cluster.algorithms, result.scenario.cluster.algorithms);
  const LoadResult wrong = folder.load(sound_scenario(), {"cluster.collectives.data=trees"});
  ASSERT_EQ(wrong.errors.size(), 1U);
  EXPECT_THAT(wrong.errors[0].remedy, HasSubstr("'tree'"));
}

TEST_F(ScenarioCollectives, AreNcclsWithATrainerUnlessTheScenarioSaysOtherwise) {
  const auto priced = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"cluster.machine=h100-80gb", "cluster.trainer=nanotron"});
    LoadResult result = folder.load(sound_scenario(), overrides);
    EXPECT_EQ(describe(result.errors), "");
    return static_cast<Cluster>(priced_cluster(result.scenario));
  };
  EXPECT_EQ(of(priced({}), Axis::data), Algorithm::nccl);
  const Cluster own = priced({"cluster.collectives.data=tree"});
  EXPECT_EQ(of(own, Axis::data), Algorithm::tree);
  EXPECT_EQ(of(own, Axis::tensor), Algorithm::ring);
}

}  // namespace

// cluster.stragglers, slow_links, link_factors and layout.placement: the loader's results, and its errors.

namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;

class Degraded : public testing::Test {
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

TEST_F(Degraded, EntriesOfOneGpuMultiplyAndOthersStayAtOne) {
  const Cluster one = cluster({"cluster.stragglers=[{node: 1, slowdown: 1.5}, {node: 1, gpu: 1, slowdown: 2}]"});
  EXPECT_THAT(one.degradation.slowdown, ElementsAre(1, 1, 1, 1, 1.5, 3, 1.5, 1.5));
  EXPECT_THAT(cluster({"cluster.stragglers=[{gpu: 0, slowdown: 1.5}]"}).degradation.slowdown,
              ElementsAre(1.5, 1, 1, 1, 1.5, 1, 1, 1));
}

TEST_F(Degraded, ADrawDependsOnItsSeedAndElseOnTheRuns) {
  const auto drawn = [&](const std::string& more, const std::string& seed) {
    return cluster({"cluster.stragglers=[{sigma: 0.2" + more + "}]", "run.seed=" + seed}).degradation.slowdown;
  };
  EXPECT_EQ(drawn("", "3"), drawn("", "3"));
  EXPECT_NE(drawn("", "3"), drawn("", "4"));
  EXPECT_EQ(drawn(", seed: 9", "3"), drawn(", seed: 9", "4"));
  EXPECT_EQ(drawn(", seed: 9", "3"), drawn("", "9"));
  EXPECT_THAT(drawn("", "3"), Each(Ge(1)));  // half-normal
  EXPECT_NE(drawn(", distribution: lognormal", "3"), drawn("", "3"));
}

TEST_F(Degraded, ASlowLinkIsAPortOfTheNetworkUnlessAFabricIsNamed) {
  const Cluster one =
      cluster({"cluster.slow_links=[{node: 1, bandwidth: 0.5}, {node: 0, gpu: 1, fabric: 0, "
               "period: 10 ms, down: 0.2}]"});
  ASSERT_EQ(one.degradation.ports.size(), 2U);
  const SlowPort& network = one.degradation.ports[0];
  EXPECT_EQ(one.fabrics[network.fabric].scope, Fabric::Scope::cluster);
  EXPECT_EQ(network.share, 0.5);
  EXPECT_EQ(network.gpu, -1);
  const SlowPort& bus = one.degradation.ports[1];
  EXPECT_EQ(one.fabrics[bus.fabric].scope, Fabric::Scope::node);
  EXPECT_EQ(bus.gpu, 1);
  EXPECT_EQ(bus.period, 0.01);
  EXPECT_EQ(bus.down, 0.2);
}

TEST_F(Degraded, PlacementIsTheOrderOfNodes) {
  const Cluster one = cluster({"layout.placement=[1, 0]", "cluster.link_factors=[{nodes: [0, 1], factor: 0.5}]"});
  EXPECT_THAT(one.gpu_of_rank, ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_EQ(place_of(one, 0).node, 1);
  EXPECT_EQ(pair_share(one, 0, 1), 0.5);
}

TEST_F(Degraded, TheResolvedTextLoadsToTheSameCluster) {
  const LoadResult first = load({"layout.placement=[1, 0]", "cluster.stragglers=[{sigma: 0.2}]", "run.seed=5",
                                 "cluster.slow_links=[{node: 1, bandwidth: 0.5}]"});
  ASSERT_TRUE(first.errors.empty()) << describe(first.errors);
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  const LoadResult second = folder.load(first.scenario.resolved);
  ASSERT_TRUE(second.errors.empty()) << describe(second.errors);
  EXPECT_EQ(first.scenario.cluster.degradation.slowdown, second.scenario.cluster.degradation.slowdown);
  EXPECT_EQ(first.scenario.cluster.gpu_of_rank, second.scenario.cluster.gpu_of_rank);
  EXPECT_EQ(second.scenario.cluster.degradation.ports.size(), 1U);
}

TEST_F(Degraded, MistakesAreOneErrorEachWithPlaceAndRemedy) {
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
  EXPECT_THAT(error({"cluster.nodes=1", "cluster.gpus_per_node=1", "layout={}",
                     "cluster.slow_links=[{node: 0, bandwidth: 0.5}]"}),
              HasSubstr("node 0 has no port"));
  EXPECT_THAT(error({"cluster.stragglers.0.slowdown=2"}),
              HasSubstr("cluster.stragglers has no items yet; give the list, for example --set "
                        "'cluster.stragglers=[{slowdown: 2}]'"));
  EXPECT_THAT(error({"cluster.link_factors=[{nodes: [1, 1], factor: 0.5}]"}), HasSubstr("these are no two nodes"));
  EXPECT_THAT(error({"layout.placement=[0, 0]"}),
              HasSubstr("layout.placement: node 0 is named twice; allowed: each of 0 to 1"));
  EXPECT_THAT(error({"layout.placement=[1]"}), HasSubstr("layout.placement: it names 1 of 2 nodes"));
  EXPECT_THAT(error({"layout.placement=[1, 2]"}), HasSubstr("layout.placement: there is no node 2"));
}

}  // namespace

}  // namespace slipway::test
