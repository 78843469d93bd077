// Slow GPUs, slow ports and weak pairs as data: which ranks are affected, and by how much.
#include "models/machine/degradation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/machine/topology.h"
#include "tests/support/hand_graph.h"

namespace slipway::test {
namespace {

// Mean share of the fabric's bandwidth that a message gets.
double share(const Cluster& cluster, int from, int to) {
  Route route;
  find_route(cluster, 0, from, to, route);
  return narrowest(route) / cluster.fabrics[0].bandwidth;
}

Cluster two_groups() {  // nodes 0, 1 of two GPUs, node 2 of four
  Cluster cluster = hand_cluster(2, 2, 1e9, 1e-5);
  NodeGroup large;
  large.nodes = 1, large.gpus_per_node = 4;
  cluster.groups.push_back(large);
  cluster.fabrics[0].groups = {0, 1};
  return cluster;
}

TEST(NodeOrder, RanksFillNodesInThatOrder) {
  Cluster cluster = two_groups();
  cluster.gpu_of_rank = gpus_in_order(cluster, {2, 0, 1});
  EXPECT_EQ(place_of(cluster, 0).node, 2);
  EXPECT_EQ(place_of(cluster, 3).gpu, 3);
  EXPECT_EQ(place_of(cluster, 3).group, 1);
  EXPECT_EQ(place_of(cluster, 4).node, 0);
  EXPECT_EQ(place_of(cluster, 7).node, 1);
  EXPECT_EQ(place_of(cluster, 7).gpu, 1);
  EXPECT_THROW(place_of(cluster, 8), std::invalid_argument);
  Cluster alike = hand_cluster(3, 2, 1e9, 0);
  alike.gpu_of_rank = gpus_in_order(alike, {1, 2, 0});
  EXPECT_EQ(place_of(alike, 0).node, 1);
  EXPECT_EQ(place_of(alike, 3).node, 2);
  EXPECT_EQ(place_of(alike, 5).node, 0);
  EXPECT_THROW(place_of(alike, 6), std::invalid_argument);
}

TEST(NodeOrder, TheOrderThatIsThereAnywayChangesNothing) {
  Cluster plain = two_groups(), ordered = two_groups();
  ordered.gpu_of_rank = gpus_in_order(ordered, {0, 1, 2});
  for (int rank = 0; rank < rank_capacity(plain); ++rank) {
    EXPECT_EQ(place_of(plain, rank).node, place_of(ordered, rank).node);
    EXPECT_EQ(place_of(plain, rank).gpu, place_of(ordered, rank).gpu);
    EXPECT_EQ(place_of(plain, rank).group, place_of(ordered, rank).group);
  }
}

TEST(SlowGpus, AreGpusAndNotRanks) {
  Cluster cluster = two_groups();
  cluster.degradation.slowdown.assign(8, 1);
  cluster.degradation.slowdown[5] = 3;  // GPU 1 of node 2
  EXPECT_EQ(slowdown_of(cluster, 5), 3);
  cluster.gpu_of_rank = gpus_in_order(cluster, {2, 0, 1});
  EXPECT_EQ(slowdown_of(cluster, 5), 1);
  EXPECT_EQ(slowdown_of(cluster, 1), 3);
}

TEST(SlowPorts, MultiplyAndTouchAllGpusBehindThem) {
  Cluster cluster = hand_cluster(2, 4, 1e9, 0, 2);
  cluster.degradation.ports = {{0, 1, -1, 0.5, 0, 0}, {0, 1, 1, 0.4, 0.01, 0.25}};
  EXPECT_EQ(port_state(cluster, 0, {0, 0, 0}), PortState{});
  EXPECT_EQ(port_state(cluster, 0, {0, 1, 2}), (PortState{0.5, 0, 0}));
  EXPECT_EQ(port_state(cluster, 0, {0, 1, 0}), (PortState{0.2, 0.01, 0.25}));  // behind the port of GPU 1
  EXPECT_DOUBLE_EQ(share(cluster, 0, 4), 0.2 * 0.75);
  EXPECT_DOUBLE_EQ(share(cluster, 0, 6), 0.5);
}

TEST(SlowPorts, CountEachPortOfTheRanksOnceAndNoOther) {
  Cluster cluster = hand_cluster(3, 4, 1e9, 0);  // a port per GPU
  cluster.degradation.ports = {{0, 1, -1, 0.5, 0, 0}};
  EXPECT_EQ(slow_port_count(cluster, 12), 4) << "without a GPU: all ports of the node";
  EXPECT_EQ(slow_port_count(cluster, 6), 2) << "ranks 4 and 5 sit in node 1";
  EXPECT_EQ(slow_port_count(cluster, 4), 0);
  cluster.degradation.ports.push_back({0, 1, 2, 1, 0.01, 0.1});  // a slow one also flaps
  cluster.degradation.ports.push_back({0, 2, 3, 1, 0.01, 0.1});  // and another only flaps
  EXPECT_EQ(slow_port_count(cluster, 12), 5);
  cluster.degradation.ports = {{0, 0, 1, 1, 0, 0}};
  EXPECT_EQ(slow_port_count(cluster, 12), 0) << "all of the bandwidth is left";
  Cluster shared = hand_cluster(2, 4, 1e9, 0, 2);
  shared.degradation.ports = {{0, 1, 0, 0.5, 0, 0}, {0, 1, 1, 0.5, 0, 0}};
  EXPECT_EQ(slow_port_count(shared, 8), 1) << "GPUs 0 and 1 share it";
}

TEST(WeakPairs, HoldInBothDirectionsAndForNobodyElse) {
  Cluster cluster = hand_cluster(3, 1, 1e9, 0);
  cluster.weak_pairs = {{0, 2, 0.25}};
  EXPECT_EQ(share(cluster, 0, 2), 0.25);
  EXPECT_EQ(share(cluster, 2, 0), 0.25);
  EXPECT_EQ(share(cluster, 0, 1), 1);
  EXPECT_FALSE(is_degraded(cluster));  // the cluster as it is
}

TEST(SpreadFactors, HaveTheMomentsOfTheirDistribution) {
  constexpr int gpus = 200000;
  constexpr double sigma = 0.1;
  double logs = 0, squares = 0, halves = 0;
  for (std::uint64_t gpu = 0; gpu < gpus; ++gpu) {
    const double log = std::log(spread_factor(Spread::lognormal, sigma, 7, gpu));
    logs += log, squares += log * log;
    const double half = spread_factor(Spread::half_normal, sigma, 7, gpu);
    EXPECT_GE(half, 1);
    halves += half - 1;
  }
  // Four standard errors.
  EXPECT_NEAR(logs / gpus, 0, 4 * sigma / std::sqrt(gpus));
  EXPECT_NEAR(squares / gpus, sigma * sigma, 4 * std::sqrt(2.0 / gpus) * sigma * sigma);
  const double pi = std::acos(-1);
  EXPECT_NEAR(halves / gpus, sigma * std::sqrt(2 / pi), 4 * sigma * std::sqrt((1 - 2 / pi) / gpus));
}

TEST(SpreadFactors, DependOnSeedAndGpuAlone) {
  EXPECT_EQ(spread_factor(Spread::lognormal, 0.1, 3, 5), spread_factor(Spread::lognormal, 0.1, 3, 5));
  EXPECT_NE(spread_factor(Spread::lognormal, 0.1, 3, 5), spread_factor(Spread::lognormal, 0.1, 4, 5));
  EXPECT_NE(spread_factor(Spread::lognormal, 0.1, 3, 5), spread_factor(Spread::lognormal, 0.1, 3, 6));
  EXPECT_EQ(spread_factor(Spread::half_normal, 0, 3, 5), 1);
}

}  // namespace
}  // namespace slipway::test
