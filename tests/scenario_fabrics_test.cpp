// cluster.fabrics: speeds taken from the machines' links, topologies, and what does not fit.
#include <gmock/gmock.h>

#include "models/topology.h"
#include "tests/scenario_file.h"

namespace slipway {
namespace {

using testing::HasSubstr;

class ScenarioFabrics : public testing::Test {
 protected:
  ScenarioFabrics() { folder.write("box.yaml", test_machine()); }
  // Of the sound scenario: two nodes of four.
  LoadResult with(const std::string& fabrics) {
    return folder.load(sound_scenario(), {"cluster.fabrics=" + fabrics});
  }
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
  const TopologyShape& links = c.fabrics[1].links;
  EXPECT_EQ(links.shape, (std::vector<int>{4, 2}));
  EXPECT_EQ(links.uplinks, std::vector<int>{2});
  EXPECT_EQ(links.hop_latency, 1e-6);
  EXPECT_EQ(links.link_bandwidth, 4e9);
  EXPECT_TRUE(links.pinned);
}

TEST_F(ScenarioFabrics, TakeATopologysNameAlone) {
  const Cluster c = cluster("[{scope: node}, {scope: cluster, topology: rail-optimised}]");
  EXPECT_EQ(c.fabrics[1].topology, topology_named("rail-optimised"));
  EXPECT_TRUE(c.fabrics[1].links.moves_inside);
  EXPECT_FALSE(cluster("[{scope: cluster, topology: rail-optimised}]").fabrics[0].links.moves_inside);
  EXPECT_EQ(cluster("[{scope: node}, {scope: cluster, topology: star}]").fabrics[1].topology, nullptr);
}

TEST_F(ScenarioFabrics, ResolvedTextLoadsToTheSameLinks) {
  const LoadResult first = with(
      "[{scope: node}, {scope: cluster, topology: {kind: rail-optimised, shape: [1], oversubscription: 2, "
      "crossing: core}}]");
  const LoadResult again = folder.load(first.scenario.resolved);
  EXPECT_EQ(describe(again.errors), "");
  EXPECT_EQ(first.scenario.resolved, again.scenario.resolved);
  EXPECT_EQ(again.scenario.cluster.fabrics[1].links.oversubscription, 2);
  EXPECT_FALSE(again.scenario.cluster.fabrics[1].links.moves_inside);
}

TEST_F(ScenarioFabrics, SayWhichNumberDoesNotFitAndWhatWould) {
  const ScenarioError sides =
      error("[{scope: node}, {scope: cluster, topology: {kind: torus, shape: [3, 2]}}]");
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
  const ScenarioError crossing =
      error("[{scope: cluster, topology: {kind: rail-optimised, crossing: node}}]");
  EXPECT_EQ(crossing.key, "cluster.fabrics.0.topology.crossing");
  EXPECT_THAT(crossing.remedy, HasSubstr("crossing: core"));
  const ScenarioError star = error("[{scope: node}, {scope: cluster, topology: {kind: star, shape: [4]}}]");
  EXPECT_EQ(star.key, "cluster.fabrics.1.topology.shape");
  const ScenarioError scope =
      error("[{scope: node}, {scope: cluster, topology: {kind: pcie, shape: [4]}}]");
  EXPECT_EQ(scope.key, "cluster.fabrics.1.topology.kind");
  EXPECT_THAT(error("[{scope: node}, {scope: cluster, topology: dragonfli}]").remedy,
              HasSubstr("'dragonfly'"));
}

TEST_F(ScenarioFabrics, NeedASpeedWhereTheMachineHasNone) {
  folder.write(
      "box.yaml",
      "name: box\nmemory_bytes: 16 GB\npeak_flops: {bfloat16: 2 TFLOP/s}\nmemory_bandwidth: 100 GB/s\n"
      "node_link: {name: bus, bandwidth: 10 GB/s, latency: 1 us}\n");
  const ScenarioError none = error("[{scope: node}, {scope: cluster}]");
  EXPECT_EQ(none.key, "cluster.fabrics.1");
  EXPECT_THAT(none.message, HasSubstr("no bandwidth"));
}

class ScenarioCollectives : public ScenarioFabrics {
 protected:
  Algorithm of(const Cluster& cluster, Axis axis) {
    return cluster.algorithms[static_cast<std::size_t>(axis)];
  }
};

TEST_F(ScenarioCollectives, AreRingsButForTheGradientNormUnlessTheScenarioSaysOtherwise) {
  const LoadResult plain = folder.load(sound_scenario());
  for (const Axis axis : {Axis::tensor, Axis::context, Axis::data, Axis::embedding})
    EXPECT_EQ(of(plain.scenario.cluster, axis), Algorithm::ring);
  EXPECT_EQ(of(plain.scenario.cluster, Axis::world), Algorithm::nccl)
      << "the few bytes of the gradient norm";
  const LoadResult rings = folder.load(sound_scenario(), {"cluster.collectives=ring"});
  EXPECT_EQ(of(rings.scenario.cluster, Axis::world), Algorithm::ring);
  const LoadResult all = folder.load(sound_scenario(), {"cluster.collectives=nccl"});
  EXPECT_EQ(of(all.scenario.cluster, Axis::tensor), Algorithm::nccl);
  EXPECT_EQ(of(all.scenario.cluster, Axis::world), Algorithm::nccl);
}

TEST_F(ScenarioCollectives, AreOverriddenPerCommunicator) {
  const LoadResult result = folder.load(
      sound_scenario(),
      {"cluster.collectives={all: multi-ring, data: tree}", "cluster.collectives.world=hierarchical"});
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

TEST_F(ScenarioCollectives, AreTheTrainersOwnWithAStack) {
  const LoadResult result =
      folder.load(sound_scenario(),
                  {"cluster.machine=h100-80gb", "cluster.stack=nanotron", "cluster.collectives=nccl"});
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_EQ(result.errors[0].key, "cluster.collectives");
  EXPECT_THAT(result.errors[0].message, HasSubstr("without cluster.stack"));
}

}  // namespace
}  // namespace slipway
