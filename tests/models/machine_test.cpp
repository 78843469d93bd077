#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "models/machine/machine.h"
#include "models/trace/statistics.h"

namespace slipway::test {

namespace {

Machine machine_of(double network) {
  Machine machine;
  machine.node_link = {"nvlink", 300e9, 2e-6, 0.75};
  machine.network_link = {"infiniband", network, 5e-6, 1.0};
  return machine;
}

// Two nodes of four GPUs, then one node of two.
Cluster mixed_cluster() {
  Cluster cluster;
  cluster.name = "mixed";
  cluster.groups = {{machine_of(25e9), 2, 4}, {machine_of(12.5e9), 1, 2}};
  cluster.fabrics = default_fabrics(cluster.groups);
  return cluster;
}

TEST(Placement, FillsNodesInOrderAndGroupsInOrder) {
  const Cluster cluster = mixed_cluster();
  EXPECT_EQ(rank_capacity(cluster), 10);
  const int expected[][4] = {{0, 0, 0, 0}, {3, 0, 0, 3}, {4, 0, 1, 0}, {7, 0, 1, 3}, {8, 1, 2, 0}, {9, 1, 2, 1}};
  for (const auto& [rank, group, node, gpu] : expected) {
    const Place place = place_of(cluster, rank);
    EXPECT_EQ(place.group, group) << rank;
    EXPECT_EQ(place.node, node) << rank;
    EXPECT_EQ(place.gpu, gpu) << rank;
  }
  EXPECT_THROW(place_of(cluster, 10), std::invalid_argument);
  EXPECT_THROW(place_of(cluster, -1), std::invalid_argument);
}

TEST(Placement, TheGroupOfANodeIsThatOfItsRanks) {
  const Cluster cluster = mixed_cluster();
  for (int rank = 0; rank < rank_capacity(cluster); ++rank) {
    const Place place = place_of(cluster, rank);
    EXPECT_EQ(group_of_node(cluster, place.node), place.group) << rank;
  }
  EXPECT_THROW(group_of_node(cluster, 3), std::invalid_argument);
  EXPECT_THROW(group_of_node(cluster, -1), std::invalid_argument);
}

TEST(Fabrics, AreByDefaultOneInsideTheNodesOfEachGroupAndOneBetweenNodes) {
  const Cluster cluster = mixed_cluster();
  ASSERT_EQ(cluster.fabrics.size(), 3u);
  EXPECT_EQ(cluster.fabrics[0].scope, Fabric::Scope::node);
  EXPECT_DOUBLE_EQ(cluster.fabrics[0].bandwidth, 225e9);  // what a large message reaches
  EXPECT_EQ(cluster.fabrics[2].scope, Fabric::Scope::cluster);
  EXPECT_DOUBLE_EQ(cluster.fabrics[2].bandwidth, 12.5e9);  // of the slower group
  EXPECT_EQ(fabric_between(cluster, 0, 3), 0);
  EXPECT_EQ(fabric_between(cluster, 8, 9), 1);
  EXPECT_EQ(fabric_between(cluster, 0, 4), 2);
  EXPECT_EQ(fabric_between(cluster, 3, 8), 2);
}

// A DGX-1 has no switch: two of its eight GPUs share one of a GPU's six links. A DGX-2 has.
TEST(NodeShare, IsOfOneLinkPerOtherMemberWhereANodeHasNoSwitch) {
  Machine machine = machine_of(25e9);
  EXPECT_EQ(node_share({machine, 1, 8}, 2), 1);
  machine.node_link.mesh = 7;
  EXPECT_DOUBLE_EQ(node_share({machine, 1, 8}, 2), 1.0 / 6);
  EXPECT_DOUBLE_EQ(node_share({machine, 1, 8}, 4), 0.5);
  EXPECT_EQ(node_share({machine, 1, 8}, 8), 1);
  EXPECT_EQ(node_share({machine, 1, 16}, 2), 1);
}

TEST(Fabrics, OfOneNodeNeedNoNetwork) {
  EXPECT_EQ(default_fabrics({{machine_of(25e9), 1, 8}}).size(), 1u);
  EXPECT_EQ(default_fabrics({{machine_of(25e9), 1, 1}}).size(), 0u);
}

TEST(Fabrics, ThatConnectNobodyAreRefusedWithBothPlaces) {
  Cluster cluster = mixed_cluster();
  cluster.fabrics.pop_back();
  try {
    fabric_between(cluster, 3, 8);
    FAIL() << "connected over nothing";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("node 0, GPU 3"), std::string::npos) << message;
    EXPECT_NE(message.find("group 1, node 2, GPU 0"), std::string::npos) << message;
  }
}

}  // namespace

namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(WeightedMedian, HasHalfOfTheWeightAtOrBelowIt) {
  EXPECT_EQ(weighted_median({{3, 1}, {1, 1}, {2, 1}}), 2);
  EXPECT_EQ(weighted_median({{1, 1}, {5, 3}, {2, 1}}), 5);
  EXPECT_EQ(weighted_median({{9, 0}, {4, 1}, {1, 0}}), 4) << "what weighs nothing does not count";
}

// By hand: 2, 4, 6 deviate from their mean 4 by -2, 0, 2, so s² = 8 / 2 and the error is √(4 / 3).
TEST(StandardError, OfAMeanIsOfASampleAndUnknownOfOneValue) {
  EXPECT_DOUBLE_EQ(standard_error({2, 4, 6}).value(), std::sqrt(4.0 / 3));
  EXPECT_DOUBLE_EQ(standard_error({1, 2}).value(), 0.5);
  EXPECT_EQ(standard_error({3, 3, 3}), 0);
  EXPECT_EQ(standard_error({3}), std::nullopt);
  // Shares that differ in their last digits only: the squares of such numbers do not.
  EXPECT_NEAR(standard_error({1 - 1e-9, 1 + 1e-9}).value(), 1e-9, 1e-15);
}

}  // namespace

}  // namespace slipway::test
