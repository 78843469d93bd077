// Contention on the links between a topology's ports, against closed forms.
#include <gtest/gtest.h>

#include "models/machine/priced_cluster.h"
#include "models/machine/topology.h"
#include "schedules/lower/representatives.h"
#include "schedules/time/durations.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double bandwidth = 1e9, latency = 1e-5, bytes = 1e6;
constexpr double alone = latency + bytes / bandwidth;

PricedCluster cluster_of(const char* kind, int nodes, int gpus, ParameterValues parameters) {
  PricedCluster cluster = hand_cluster(nodes, gpus, bandwidth, latency);
  cluster.fabrics[0].topology = topology_named(kind);
  cluster.fabrics[0].parameters = std::move(parameters);
  return cluster;
}

std::vector<double> ends(HandGraph& hand, const PricedCluster& cluster,
                         CollectiveFidelity fidelity = CollectiveFidelity::automatic) {
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  options.collectives = fidelity;
  return simulate(hand.graph, cluster, hand.durations, options).timeline.end;
}

TEST(OversubscribedFatTree, SlowsWhatCrossesItsLeavesByItsRatioAndNothingElse) {
  for (const double ratio : {1.0, 2.0, 4.0}) {
    HandGraph across(8), within(8);
    for (int port = 0; port < 4; ++port) across.transfer(port, 4 + port, bytes);
    for (const int leaf : {0, 4}) {
      within.transfer(leaf, leaf + 1, bytes);
      within.transfer(leaf + 2, leaf + 3, bytes);
    }
    const PricedCluster cluster = cluster_of("fat-tree", 8, 1, {{"shape", {4}}, {"oversubscription", ratio}});
    for (const double end : ends(across, cluster)) EXPECT_NEAR(end, latency + ratio * bytes / bandwidth, 1e-12);
    for (const double end : ends(within, cluster)) EXPECT_NEAR(end, alone, 1e-12);
  }
}

TEST(OversubscribedFatTree, GivesOneMessageAllUplinks) {
  HandGraph hand(8);
  hand.transfer(0, 4, bytes);
  EXPECT_NEAR(ends(hand, cluster_of("fat-tree", 8, 1, {{"shape", {4}}, {"oversubscription", 4.0}}))[0], alone, 1e-12);
}

TEST(PinnedFatTree, MessagesThatMeetOnAnUplinkHalveEachOther) {
  HandGraph meet(8), pass(8);
  meet.transfer(0, 4, bytes);
  meet.transfer(1, 6, bytes);
  pass.transfer(0, 4, bytes);
  pass.transfer(1, 5, bytes);
  ParameterValues parameters{{"shape", {4}}, {"uplinks", {2}}};
  for (const double end : ends(meet, cluster_of("fat-tree", 8, 1, parameters))) EXPECT_NEAR(end, alone, 1e-12);
  parameters["routing"] = "static";
  for (const double end : ends(meet, cluster_of("fat-tree", 8, 1, parameters)))
    EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
  for (const double end : ends(pass, cluster_of("fat-tree", 8, 1, parameters))) EXPECT_NEAR(end, alone, 1e-12);
}

TEST(Rails, RingsOfEqualGpusDoNotMeetAndMessagesToOtherRailsShareTheUplinks) {
  HandGraph rings(8), crossing(8);
  rings.collective(Collective::all_reduce, {0, 2, 4, 6}, bytes, 7);
  rings.collective(Collective::all_reduce, {1, 3, 5, 7}, bytes, 7);
  for (const int node : {0, 2, 4, 6}) crossing.transfer(node, (node + 3) % 8, bytes);
  const PricedCluster cluster = cluster_of("rail-optimised", 4, 2, {{"shape", {4}}, {"oversubscription", 2.0}});
  for (const double end : ends(rings, cluster, CollectiveFidelity::flows))
    EXPECT_NEAR(end, 6 * latency + 1.5 * bytes / bandwidth, 1e-12);
  for (const double end : ends(rings, cluster)) EXPECT_EQ(end, 7);  // no contention: closed form
  for (const double end : ends(crossing, cluster)) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
}

TEST(Rails, MessagesThatMoveInsideFirstShareThePortOfTheirRail) {
  PricedCluster cluster = cluster_of("rail-optimised", 2, 2, {{"crossing", "node"}});
  Fabric bus = cluster.fabrics[0];
  bus.scope = Fabric::Scope::node;
  bus.topology = nullptr;
  bus.bandwidth = 100 * bandwidth;
  bus.latency = 0;
  cluster.fabrics.push_back(bus);
  HandGraph hand(4);
  hand.transfer(0, 3, bytes);  // leaves by the port of GPU 1
  EXPECT_NEAR(ends(hand, cluster)[0], alone, 1e-12);
  hand.transfer(1, 3, bytes);
  for (const double end : ends(hand, cluster)) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
}

TEST(Dragonfly, TwoRoutersOfAGroupShareItsGlobalLink) {
  // Three groups of two routers, a port and a global link each: one link between every two groups.
  ParameterValues parameters{{"shape", {1, 2, 1}}};
  const auto cluster = [&] { return cluster_of("dragonfly", 6, 1, parameters); };
  HandGraph same(6), other(6);
  same.transfer(0, 2, bytes);
  same.transfer(1, 3, bytes);
  other.transfer(0, 2, bytes);
  other.transfer(1, 4, bytes);
  for (const double end : ends(same, cluster())) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
  for (const double end : ends(other, cluster())) EXPECT_NEAR(end, alone, 1e-12);
  parameters["global_bandwidth"] = 2 * bandwidth;
  for (const double end : ends(same, cluster())) EXPECT_NEAR(end, alone, 1e-12);
}

TEST(Torus, RoutesThroughOneLinkShareItAndOthersDoNot) {
  // 0 → 2 and 1 → 2 on a ring of six meet on the link 1 → 2.
  HandGraph meet(6), apart(6);
  meet.transfer(0, 2, bytes);
  meet.transfer(1, 2, bytes);
  apart.transfer(0, 2, bytes);
  apart.transfer(2, 4, bytes);
  apart.transfer(2, 0, bytes);
  const PricedCluster cluster = cluster_of("torus", 6, 1, {{"shape", {6}}});
  for (const double end : ends(meet, cluster)) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
  for (const double end : ends(apart, cluster)) EXPECT_NEAR(end, alone, 1e-12);
}

// In a torus [2, 2], 0 → 3 goes through 1, along x first; 3 → 0 through 2.
TEST(Torus, ASlowPortSlowsAllThatCrossesItsVertexBothWays) {
  PricedCluster cluster = cluster_of("torus", 4, 1, {{"shape", {2, 2}}});
  cluster.degradation.ports = {{0, 1, -1, 0.1, 0, 0}};
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to) {
      if (from == to) continue;
      HandGraph hand(4);
      hand.transfer(from, to, bytes);
      const double slower = from == 1 || to == 1 || (from == 0 && to == 3) ? 10 : 1;
      EXPECT_NEAR(ends(hand, cluster)[0], latency + slower * bytes / bandwidth, 1e-12) << from << " to " << to;
    }
  HandGraph ring(4);
  ring.collective(Collective::all_reduce, {0, 1, 3, 2}, bytes);
  const double expected = 6 * latency + 10 * 1.5 * bytes / bandwidth;
  EXPECT_NEAR(ends(ring, cluster, CollectiveFidelity::flows)[0], expected, 1e-12);
  EXPECT_NEAR(durations_of(ring.graph, cluster)[0], expected, 1e-12);
}

TEST(Torus, ALinkOfTwoSlowPortsIsAsFastAsTheSlowerAndUpWhileBothAre) {
  PricedCluster cluster = cluster_of("torus", 4, 1, {{"shape", {4}}});
  const auto seconds = [&] {
    HandGraph hand(4);
    hand.transfer(1, 2, bytes);
    return ends(hand, cluster)[0] - latency;
  };
  cluster.degradation.ports = {{0, 1, -1, 0.5, 0, 0}, {0, 2, -1, 0.25, 0, 0}};
  EXPECT_NEAR(seconds(), 4 * bytes / bandwidth, 1e-12);
  // 2 is up for the first half of every 10 us and 1 for the first half of every two of these: 5 us of 20.
  cluster.degradation.ports = {{0, 1, -1, 1, 2e-5, 0.5}, {0, 2, -1, 1, 1e-5, 0.5}};
  EXPECT_NEAR(seconds(), 4 * bytes / bandwidth, 2e-5);
}

TEST(Torus, ARingThatFollowsTheGridHasItsLinksForItself) {
  HandGraph rows(16), columns(16);
  for (int i = 0; i < 4; ++i) {
    rows.collective(Collective::all_reduce, {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}, bytes, 7);
    columns.collective(Collective::all_reduce, {i, 4 + i, 8 + i, 12 + i}, bytes, 7);
  }
  const PricedCluster cluster = cluster_of("torus", 16, 1, {{"shape", {4, 4}}});
  for (HandGraph* hand : {&rows, &columns})
    for (const double end : ends(*hand, cluster, CollectiveFidelity::flows))
      EXPECT_NEAR(end, 6 * latency + 1.5 * bytes / bandwidth, 1e-12);
  // A ring that jumps over its neighbour crosses two links each time; both such rings share all of them.
  HandGraph jumping(4);
  jumping.collective(Collective::all_gather, {0, 2}, bytes, 7);
  jumping.collective(Collective::all_gather, {1, 3}, bytes, 7);
  for (const double end : ends(jumping, cluster_of("torus", 4, 1, {{"shape", {4}}})))
    EXPECT_NEAR(end, latency + 2 * 0.5 * bytes / bandwidth, 1e-12);
}

TEST(PcieNode, GpusOfOneSwitchShareItsUplink) {
  PricedCluster cluster = cluster_of("pcie", 1, 4, {{"shape", {2, 2}}});
  cluster.fabrics[0].scope = Fabric::Scope::node;
  HandGraph across(4), within(4);
  across.transfer(0, 2, bytes);
  across.transfer(1, 3, bytes);
  within.transfer(0, 1, bytes);
  within.transfer(2, 3, bytes);
  for (const double end : ends(across, cluster)) EXPECT_NEAR(end, latency + 2 * bytes / bandwidth, 1e-12);
  for (const double end : ends(within, cluster)) EXPECT_NEAR(end, alone, 1e-12);
}

TEST(ConcurrentRings, OfKStagesOnOneNicTakeKTimesAsLong) {
  for (const int stages : {1, 2, 4}) {
    HandGraph hand(4 * 4);  // four nodes of four GPUs behind one NIC; a data-parallel ring per stage
    for (int stage = 0; stage < stages; ++stage)
      hand.collective(Collective::all_reduce, {stage, 4 + stage, 8 + stage, 12 + stage}, bytes,
                      6 * latency + 1.5 * bytes / bandwidth);
    for (const double end : ends(hand, hand_cluster(4, 4, bandwidth, latency, 4)))
      EXPECT_NEAR(end, 6 * latency + stages * 1.5 * bytes / bandwidth, 1e-11);
  }
}

TEST(PipelineTransfers, ShareThePortWithADataParallelRing) {
  // A ring of two (bytes/2 each way) and a transfer of `bytes` leave port 0 together. The ring ends after 2 × bytes/2,
  // the transfer after bytes/2 + bytes.
  HandGraph hand(3);
  hand.collective(Collective::reduce_scatter, {0, 1}, bytes, 7);
  hand.transfer(0, 2, bytes);
  const auto end = ends(hand, hand_cluster(3, 1, bandwidth, 0));
  EXPECT_NEAR(end[0], bytes / bandwidth, 1e-12);
  EXPECT_NEAR(end[1], 1.5 * bytes / bandwidth, 1e-12);
}

TEST(SeveralFabrics, CarryTheTrafficOfTheirOwnMembersSideBySide) {
  // Group 0 has its own fabric beside the common one, so its traffic stays off the latter.
  PricedCluster cluster = hand_cluster(2, 1, bandwidth, latency);
  cluster.groups.push_back(cluster.groups[0]);
  Fabric common = cluster.fabrics[0];
  common.groups = {0, 1};
  common.bandwidth = bandwidth / 4;
  cluster.fabrics.push_back(common);
  HandGraph hand(4);
  hand.transfer(0, 1, bytes);
  hand.transfer(0, 2, bytes);
  const auto end = ends(hand, cluster);
  EXPECT_NEAR(end[0], alone, 1e-12);
  EXPECT_NEAR(end[1], latency + 4 * bytes / bandwidth, 1e-12);
}

TEST(RepresentativesAndAllRanks, ATopologyHasNoRepresentatives) {
  Layout layout;
  layout.data = 8;
  PricedCluster cluster = hand_cluster(8, 1, bandwidth, latency);
  EXPECT_EQ(representatives_of(cluster, layout, {}).replicas, 1);
  cluster = cluster_of("torus", 8, 1, {{"shape", {2, 4}}});
  EXPECT_EQ(representatives_of(cluster, layout, {}).replicas, 8);
}

}  // namespace
}  // namespace slipway::test
