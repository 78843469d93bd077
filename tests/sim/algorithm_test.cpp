// Collective algorithms as flows: the closed form's time on links without other traffic, and contention.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "models/machine/collectives.h"
#include "models/machine/priced_cluster.h"
#include "models/machine/topology.h"
#include "schedules/time/link_path.h"
#include "schedules/time/replay.h"
#include "sim/patterns.h"
#include "sim/simulate.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

constexpr double bandwidth = 1e9, latency = 1e-5, bytes = 1e7;

// Nodes of `gpus` with a bus ten times as fast as the network and a tenth of its latency.
PricedCluster cluster_of(Algorithm algorithm, int nodes, int gpus, int gpus_per_port = 1) {
  PricedCluster cluster = hand_cluster(nodes, gpus, bandwidth, latency, gpus_per_port);
  cluster.algorithms.fill(algorithm);
  if (gpus == 1) return cluster;
  Fabric bus = cluster.fabrics[0];
  bus.scope = Fabric::Scope::node;
  bus.bandwidth = 10 * bandwidth;
  bus.latency = latency / 10;
  bus.gpus_per_port = 1;
  cluster.fabrics.push_back(bus);
  return cluster;
}

std::vector<std::int32_t> ranks_of(const PricedCluster& cluster) {
  std::vector<std::int32_t> ranks;
  for (int r = 0; r < rank_capacity(cluster); ++r) ranks.push_back(r);
  return ranks;
}

double seconds(const PricedCluster& cluster, Collective kind, double size, CollectiveFidelity fidelity) {
  HandGraph hand(rank_capacity(cluster));
  hand.collective(kind, ranks_of(cluster), size);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  options.collectives = fidelity;
  return simulate(hand.graph, cluster, options).timeline.makespan_s;
}

struct Case {
  Algorithm algorithm;
  int nodes, gpus, gpus_per_port;
};

class FlowsOf : public testing::TestWithParam<Case> {};

TEST_P(FlowsOf, AnAlgorithmAloneTakeTheTimeOfItsClosedForm) {
  const auto [algorithm, nodes, gpus, per_port] = GetParam();
  const PricedCluster cluster = cluster_of(algorithm, nodes, gpus, per_port);
  for (const Collective kind :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
    const double closed = seconds(cluster, kind, bytes, CollectiveFidelity::closed_form);
    EXPECT_NEAR(seconds(cluster, kind, bytes, CollectiveFidelity::flows), closed, 1e-7 * closed) << name_of(kind);
    EXPECT_NEAR(seconds(cluster, kind, bytes, CollectiveFidelity::automatic), closed, 1e-7 * closed) << name_of(kind);
  }
}

// Each message between the pair has its own largest rate, and the ports carry the others meanwhile.
TEST_P(FlowsOf, AnAlgorithmOnAWeakPairOfNodesTakeTheTimeOfItsClosedForm) {
  const auto [algorithm, nodes, gpus, per_port] = GetParam();
  if (nodes == 1) return;
  for (const auto& [other, share] : {std::pair{1, 0.6}, {1, 0.2}, {1, 0.01}, {nodes - 1, 0.05}, {nodes / 2, 0.1}}) {
    PricedCluster cluster = cluster_of(algorithm, nodes, gpus, per_port);
    cluster.weak_pairs = {{0, other, share}};
    for (const Collective kind :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
      const double closed = seconds(cluster, kind, bytes, CollectiveFidelity::closed_form);
      EXPECT_NEAR(seconds(cluster, kind, bytes, CollectiveFidelity::flows), closed, 1e-7 * closed)
          << name_of(kind) << " " << other << " " << share;
    }
  }
}

// Of the 3 messages that each of 4 nodes sends, one may take a third of the port without being slower for it.
TEST(WeakPair, SlowsAnAllToAllOnlyBelowItsPartOfThePort) {
  PricedCluster cluster = cluster_of(Algorithm::multi_ring, 4, 1, 1);
  const double alone = seconds(cluster, Collective::all_to_all, bytes, CollectiveFidelity::closed_form);
  cluster.weak_pairs = {{0, 1, 0.4}};
  EXPECT_DOUBLE_EQ(seconds(cluster, Collective::all_to_all, bytes, CollectiveFidelity::closed_form), alone);
  cluster.weak_pairs = {{0, 1, 0.1}};
  EXPECT_NEAR(seconds(cluster, Collective::all_to_all, bytes, CollectiveFidelity::closed_form),
              bytes / 4 / (0.1 * bandwidth), 4 * latency);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, FlowsOf,
                         testing::Values(Case{Algorithm::multi_ring, 4, 4, 1}, Case{Algorithm::multi_ring, 4, 4, 2},
                                         Case{Algorithm::multi_ring, 1, 8, 1}, Case{Algorithm::multi_ring, 8, 1, 1},
                                         Case{Algorithm::hierarchical, 4, 4, 1}, Case{Algorithm::hierarchical, 4, 4, 4},
                                         Case{Algorithm::hierarchical, 1, 4, 1}, Case{Algorithm::tree, 8, 1, 1},
                                         Case{Algorithm::tree, 16, 1, 1}, Case{Algorithm::tree, 8, 4, 1},
                                         Case{Algorithm::tree, 9, 2, 2}, Case{Algorithm::nccl, 8, 4, 1},
                                         Case{Algorithm::nccl, 32, 1, 1}, Case{Algorithm::gloo, 4, 4, 1},
                                         Case{Algorithm::gloo, 2, 2, 2}, Case{Algorithm::gloo, 4, 4, 4},
                                         Case{Algorithm::gloo, 1, 8, 1}, Case{Algorithm::gloo, 8, 1, 1}),
                         [](const auto& of) {
                           std::string name = name_of(of.param.algorithm);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::to_string(of.param.nodes) + "_" + std::to_string(of.param.gpus) +
                                  "_" + std::to_string(of.param.gpus_per_port);
                         });

// Two nodes are each the root of one tree and its only leaf in the other. Of three nodes, one has two edges in one tree
// and one in the other.
// GPUs without a switch (a V100's six links in a DGX-1): two share one link, eight reach all six.
TEST(Mesh, OfANodeGivesAGroupOneLinkPerOtherMember) {
  Machine machine;
  machine.node_link = {"nvlink2", 6 * bandwidth, 0, 1, 7};
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::multi_ring}) {
    PricedCluster cluster;
    cluster.groups = {{machine, 1, 8}};
    cluster.fabrics = default_fabrics(cluster.groups);
    cluster.algorithms.fill(algorithm);
    for (const int members : {2, 3, 4, 8}) {
      HandGraph hand(8);
      std::vector<std::int32_t> ranks(members);
      std::iota(ranks.begin(), ranks.end(), 0);
      hand.collective(Collective::all_gather, ranks, bytes);
      hand.finish();
      SimulationOptions options;
      options.steps = 1;
      const double links = std::min(6, members - 1), alone = bytes * (members - 1) / members / (links * bandwidth);
      for (const auto fidelity : {CollectiveFidelity::closed_form, CollectiveFidelity::flows}) {
        options.collectives = fidelity;
        EXPECT_NEAR(simulate(hand.graph, cluster, options).timeline.makespan_s, alone, 1e-6 * alone) << members;
      }
    }
  }
}

TEST(Mesh, IsThatOfTheProfileAndNotOfAFabricOfOnesOwn) {
  Machine machine;
  machine.node_link = {"nvlink2", 6 * bandwidth, 0, 1, 7};
  PricedCluster cluster;
  cluster.groups = {{machine, 1, 8}};
  cluster.fabrics = default_fabrics(cluster.groups);
  const Communicator pair{"pair", Axis::tensor, {0, 1}};
  EXPECT_DOUBLE_EQ(path_of(cluster, pair).bandwidth, bandwidth);
  cluster.fabrics[0].bandwidth = 2 * bandwidth;
  cluster.fabrics[0].own = true;
  EXPECT_DOUBLE_EQ(path_of(cluster, pair).bandwidth, 2 * bandwidth);
}

// Two nodes of two ranks, a port each: an all-gather of S crosses a port as 2·2 parts of S/4, where a ring would send
// 3/4·S. An all-reduce is Gloo's ring, whose one edge out of a node carries 3/2·S.
TEST(Gloo, SendsMoreThanARingWhereRanksShareAPort) {
  const PricedCluster gloo = cluster_of(Algorithm::gloo, 2, 2, 2), ring = cluster_of(Algorithm::ring, 2, 2, 2);
  for (const CollectiveFidelity fidelity : {CollectiveFidelity::flows, CollectiveFidelity::closed_form}) {
    for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter}) {
      EXPECT_NEAR(seconds(gloo, kind, bytes, fidelity), bytes / bandwidth, 5 * latency) << name_of(kind);
      EXPECT_NEAR(seconds(ring, kind, bytes, fidelity), 0.75 * bytes / bandwidth, 3 * latency) << name_of(kind);
    }
    EXPECT_NEAR(seconds(gloo, Collective::all_reduce, bytes, fidelity), 1.5 * bytes / bandwidth, 13 * latency);
  }
}

// Between nodes twice: the receiver's notice, and the bytes.
TEST(Gloo, CountsTheLatencyOfEachMemberThatARankSendsTo) {
  const PricedCluster cluster = cluster_of(Algorithm::gloo, 2, 2, 2);
  EXPECT_NEAR(seconds(cluster, Collective::all_gather, 8, CollectiveFidelity::closed_form),
              latency / 10 + 2 * 2 * latency + 8 / bandwidth, 1e-12);
  EXPECT_NEAR(seconds(cluster, Collective::all_reduce, 8, CollectiveFidelity::closed_form),
              2 * 3 * 2 * latency + 12 / bandwidth, 1e-12);
  EXPECT_NEAR(seconds(cluster_of(Algorithm::gloo, 1, 4, 1), Collective::all_reduce, 8, CollectiveFidelity::closed_form),
              2 * 3 * latency / 10 + 12 / (10 * bandwidth), 1e-12);
}

// Three members, two of them on one node: the busiest port is that of the two, with a part from and to each.
TEST(Gloo, TakesMembersThatLieUnevenly) {
  const PricedCluster cluster = cluster_of(Algorithm::gloo, 2, 2, 2);
  const LinkPath path = path_of(cluster, {"", Axis::data, {0, 1, 2}});
  EXPECT_EQ(path.algorithm, Algorithm::gloo);
  EXPECT_NEAR(collective_seconds(path, Collective::all_gather, 3, bytes), 2 * 2 * latency + 2 * bytes / 3 / bandwidth,
              1e-9);
}

TEST(TreeFlows, OfTwoNodesSendEachByteOnceAndOfThreeOneAndAHalf) {
  for (const auto& [nodes, sent] : {std::pair{2, 1.0}, {3, 1.5}, {4, 2.0}})
    for (const CollectiveFidelity fidelity : {CollectiveFidelity::flows, CollectiveFidelity::closed_form})
      EXPECT_NEAR(seconds(cluster_of(Algorithm::tree, nodes, 1), Collective::all_reduce, bytes, fidelity),
                  2 * std::ceil(std::log2(nodes)) * latency + sent * bytes / (0.9 * bandwidth), 1e-9);
}

TEST(TreeFlows, OverAnyNumberOfNodesTakeTheClosedFormsTime) {
  for (int nodes = 2; nodes <= 17; ++nodes)
    for (const int gpus : {1, 4}) {
      const PricedCluster cluster = cluster_of(Algorithm::tree, nodes, gpus);
      const double closed = seconds(cluster, Collective::all_reduce, bytes, CollectiveFidelity::closed_form);
      EXPECT_NEAR(seconds(cluster, Collective::all_reduce, bytes, CollectiveFidelity::flows), closed, 1e-7 * closed)
          << nodes << " nodes of " << gpus;
    }
}

// Each node has a leaf; equal GPUs of all nodes reduce at once, so that all ports of a leaf send at once.
TEST(TreeFlows, AreSlowedByOversubscriptionByItsRatio) {
  for (const int nodes : {2, 3, 4, 6})
    for (const double ratio : {1.0, 1.1, 1.2, 1.5, 2.0, 4.0}) {
      PricedCluster cluster = cluster_of(Algorithm::tree, nodes, 4);
      cluster.fabrics[0].topology = topology_named("fat-tree");
      cluster.fabrics[0].parameters = {{"shape", {4}}, {"oversubscription", ratio}};
      HandGraph hand(4 * nodes);
      for (int gpu = 0; gpu < 4; ++gpu) {
        std::vector<std::int32_t> equals;
        for (int node = 0; node < nodes; ++node) equals.push_back(4 * node + gpu);
        hand.collective(Collective::all_reduce, equals, bytes);
      }
      hand.finish();
      SimulationOptions options;
      options.steps = 1;
      const double sent = std::min(nodes, 4) / 2.0 * bytes / 0.9;
      EXPECT_NEAR(simulate(hand.graph, cluster, options).timeline.makespan_s,
                  2 * std::ceil(std::log2(nodes)) * latency + ratio * sent / bandwidth, 1e-8)
          << nodes << " nodes, oversubscribed " << ratio;
    }
}

TEST(Nccl, TakesTheTreeForShortAllReducesAndRingsForLongOnes) {
  const PricedCluster nccl = cluster_of(Algorithm::nccl, 32, 1);
  const auto closed = [&](Algorithm algorithm, double size) {
    return seconds(cluster_of(algorithm, 32, 1), Collective::all_reduce, size, CollectiveFidelity::closed_form);
  };
  for (const double size : {1e3, 1e5, 1e6, 1e7, 1e9}) {
    const double least = std::min(closed(Algorithm::tree, size), closed(Algorithm::multi_ring, size));
    EXPECT_DOUBLE_EQ(seconds(nccl, Collective::all_reduce, size, CollectiveFidelity::closed_form), least);
  }
  EXPECT_LT(closed(Algorithm::tree, 1e5), closed(Algorithm::multi_ring, 1e5));
  EXPECT_GT(closed(Algorithm::tree, 1e9), closed(Algorithm::multi_ring, 1e9));
}

// As in NCCL: up and down a tree over the nodes, and chains inside. A ring over 8,192 ranks is 2 x 8,191 latencies.
TEST(GradientNorm, OverThousandsOfRanksTakesATreesLatenciesUnlessARingIsAskedFor) {
  PricedCluster cluster = cluster_of(Algorithm::ring, 1024, 8);
  const auto norm = [&] {
    return collective_seconds(path_of(cluster, {"", Axis::world, ranks_of(cluster)}), Collective::all_reduce, 8192, 8);
  };
  EXPECT_NEAR(norm(), 2 * 8191 * latency, 1e-6);
  cluster.algorithms = default_algorithms;
  EXPECT_NEAR(norm(), 2 * (7 * latency / 10 + 10 * latency), 1e-6);
  EXPECT_EQ(path_of(cluster, {"", Axis::data, ranks_of(cluster)}).algorithm, Algorithm::ring);
}

TEST(GradientNorm, AloneTakesAsLongAsFlowsAsInClosedForm) {
  PricedCluster cluster = cluster_of(Algorithm::ring, 16, 4);
  cluster.algorithms.fill(default_algorithms.back());
  EXPECT_NEAR(seconds(cluster, Collective::all_reduce, 8, CollectiveFidelity::flows),
              seconds(cluster, Collective::all_reduce, 8, CollectiveFidelity::closed_form), 1e-7);
}

TEST(Override, OfAnAxisLeavesTheOthersAlone) {
  PricedCluster cluster = cluster_of(Algorithm::ring, 4, 4);
  cluster.algorithms[static_cast<std::size_t>(Axis::data)] = Algorithm::hierarchical;
  const auto path = [&](Axis axis) { return path_of(cluster, {"", axis, ranks_of(cluster)}); };
  EXPECT_EQ(path(Axis::data).algorithm, Algorithm::hierarchical);
  EXPECT_EQ(path(Axis::tensor).algorithm, Algorithm::ring);
  EXPECT_EQ(path(Axis::tensor).bandwidth, bandwidth);
}

TEST(Override, FallsBackToTheRingWhereNodesHaveUnequalNumbersOfMembers) {
  const PricedCluster cluster = cluster_of(Algorithm::hierarchical, 2, 4);
  EXPECT_EQ(path_of(cluster, {"", Axis::data, {0, 1, 2, 4, 5}}).algorithm, Algorithm::ring);
  EXPECT_EQ(path_of(cluster, {"", Axis::data, {0, 4, 1, 5}}).algorithm, Algorithm::ring);
  EXPECT_EQ(path_of(cluster, {"", Axis::data, {0, 1, 4, 5}}).algorithm, Algorithm::hierarchical);
}

// Each of 4 nodes of 4 reduces with all, and beside it one GPU per node with its equals. They meet on its port.
TEST(Contention, OfAHierarchicalAllReduceIsOnTheNetworkOnly) {
  const PricedCluster cluster = cluster_of(Algorithm::hierarchical, 4, 4);
  HandGraph hand(16);
  const double large = 100 * bytes;
  hand.collective(Collective::all_reduce, ranks_of(cluster), large);
  hand.transfer(0, 4, 10 * large);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  const Timeline timeline = simulate(hand.graph, cluster, options).timeline;
  const double inside = 2 * 0.75 * large / (10 * bandwidth), between = 2 * 0.75 * large / 4 / bandwidth;
  EXPECT_NEAR(timeline.end[0], 6 * latency / 10 + 6 * latency + inside + 2 * between, 1e-6);
  EXPECT_NEAR(timeline.end[1], latency + 10 * large / bandwidth + between, 1e-6);
}

// 2 nodes of 4 GPUs with a leaf each: what four ports send goes through one uplink as wide as a port.
TEST(Contention, OfACollectiveWithItselfOnAnUplinkSlowsIt) {
  PricedCluster cluster = cluster_of(Algorithm::multi_ring, 2, 4);
  cluster.fabrics[0].topology = topology_named("fat-tree");
  cluster.fabrics[0].parameters = {{"shape", {4}}, {"oversubscription", 4.0}};
  EXPECT_NEAR(seconds(cluster, Collective::all_reduce, bytes, CollectiveFidelity::automatic),
              2 * (6 * latency / 10 + latency) + 2 * 7.0 / 8 * bytes / bandwidth, 1e-8);
}

TEST(Contention, OfTwoAllToAllsOnOnePortDoublesThem) {
  HandGraph hand(8);
  hand.collective(Collective::all_to_all, {0, 2, 4, 6}, bytes, 7);
  hand.collective(Collective::all_to_all, {1, 3, 5, 7}, bytes, 7);
  hand.finish();
  SimulationOptions options;
  options.steps = 1;
  for (const double end :
       simulate(hand.graph, hand_cluster(4, 2, bandwidth, latency, 2), hand.durations, options).timeline.end)
    EXPECT_NEAR(end, 3 * latency + 2 * 0.75 * bytes / bandwidth, 1e-9);
}

TEST(Patterns, OfTreesCarryAllBytesUpAndDown) {
  // Every node but the root sends its half up and gets it back: 2·(N−1)·S/2 over each of two trees.
  const Span span{8, 1, 1, {}, {}};
  double shares = 0;
  for (const MemberEdge& edge : edges_of(Pattern::trees, 8, span)) shares += edge.share;
  const double x = 2 * 7.0 / 8;  // a ring's link, of S
  EXPECT_NEAR(shares * x * 0.9, 2 * 2 * 7 * 0.5, 1e-12);
}

}  // namespace
}  // namespace slipway::test
