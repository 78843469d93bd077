// Ways through each topology: links, bandwidths and hops, from its paper's definition.
#include "models/machine/topology.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "models/machine/machine.h"

namespace slipway::test {
namespace {

constexpr double B = 1e9, alpha = 1e-5, hop = 1e-6;

Cluster cluster_of(const char* kind, int nodes, int gpus, std::vector<int> shape) {
  Cluster cluster;
  cluster.name = kind;
  NodeGroup group;
  group.nodes = nodes;
  group.gpus_per_node = gpus;
  cluster.groups.push_back(group);
  Fabric fabric;
  fabric.groups = {0};
  fabric.bandwidth = B;
  fabric.latency = alpha;
  fabric.topology = topology_named(kind);
  fabric.parameters = {{"shape", std::move(shape)}, {"hop_latency", hop}};
  cluster.fabrics.push_back(fabric);
  return cluster;
}

Route route_of(const Cluster& cluster, int from, int to) {
  Route route;
  find_route(cluster, fabric_between(cluster, from, to), from, to, route);
  return route;
}

int hops_of(const Route& route) { return static_cast<int>(std::lround((route.latency - alpha) / hop)); }

std::string refusal(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabrics[0];
  return fabric.topology->refuse(fabric, ports_of(cluster, fabric)).message;
}

// Every directed link is used by some pair, no route uses one twice, and each begins and ends differently.
void expect_sound(const Cluster& cluster) {
  const int ranks = rank_capacity(cluster);
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      if (a == b) continue;
      const Route route = route_of(cluster, a, b);
      std::set<std::uint64_t> links;
      for (const RouteLink& link : route.links) {
        EXPECT_GT(link.bandwidth, 0);
        EXPECT_TRUE(links.insert(link.id).second) << cluster.name << ": " << a << " to " << b;
      }
      ASSERT_FALSE(links.empty());
      for (const RouteLink& back : route_of(cluster, b, a).links)
        EXPECT_FALSE(links.contains(back.id)) << "both directions share a link: " << a << ", " << b;
    }
  }
}

TEST(Star, SharesNothingButPorts) {
  const Cluster cluster = cluster_of("", 4, 2, {});
  EXPECT_EQ(cluster.fabrics[0].topology, nullptr);
  const Route route = route_of(cluster, 0, 7);
  ASSERT_EQ(route.links.size(), 2U);
  EXPECT_EQ(route.latency, alpha);
  EXPECT_EQ(narrowest(route), B);
  EXPECT_EQ(route_of(cluster, 0, 3).links[0].id, route.links[0].id);  // the same port out
  EXPECT_EQ(route_of(cluster, 3, 7).links[1].id, route.links[1].id);  // the same port in
  expect_sound(cluster);
}

// is_star against all ways: between any two ports only those two links, at the same latency.
TEST(Star, IsWhatATopologyClaimsOnlyWhereAllWaysAreLikeThat) {
  int stars = 0;
  for (const char* kind : {"", "fat-tree", "rail-optimised", "dragonfly", "torus"})
    for (const std::vector<int>& shape : {std::vector<int>{8}, {4}, {2, 2}, {4, 2}})
      for (const double oversubscription : {1.0, 2.0})
        for (const bool pinned : {false, true})
          for (const bool moves_inside : {false, true})
            for (const double hop_latency : {0.0, hop}) {
              Cluster cluster = cluster_of(kind, 4, 2, shape);
              Fabric& fabric = cluster.fabrics[0];
              fabric.parameters["oversubscription"] = pinned ? 1 : oversubscription;
              fabric.parameters["routing"] = pinned ? "static" : "adaptive";
              fabric.parameters["crossing"] = moves_inside ? "node" : "core";
              if (pinned) fabric.parameters["uplinks"] = {4};
              fabric.parameters["hop_latency"] = hop_latency;
              if (!is_star(cluster, fabric) || (fabric.topology != nullptr && !refusal(cluster).empty())) continue;
              ++stars;
              for (int a = 0; a < 8; ++a)
                for (int b = 0; b < 8; ++b) {
                  const Route route = route_of(cluster, a, b);
                  EXPECT_EQ(route.links.size(), 2U) << kind << a << b;
                  EXPECT_EQ(route.latency, route_of(cluster, 0, 1).latency) << kind << a << b;
                  EXPECT_EQ(route.links[0].id, route_of(cluster, a, (b + 1) % 8).links[0].id) << "not its own port";
                }
            }
  EXPECT_GT(stars, 70) << "those without a topology are 64";
}

TEST(FatTree, ClimbsToTheFirstCommonSwitch) {
  Cluster cluster = cluster_of("fat-tree", 16, 1, {2, 4});
  EXPECT_EQ(hops_of(route_of(cluster, 0, 1)), 0);
  EXPECT_EQ(hops_of(route_of(cluster, 0, 7)), 2);
  EXPECT_EQ(hops_of(route_of(cluster, 0, 8)), 4);
  EXPECT_EQ(route_of(cluster, 0, 8).links.size(), 2U);  // nothing is oversubscribed
  cluster.fabrics[0].parameters["oversubscription"] = 4;
  const Route pod = route_of(cluster, 0, 7), core = route_of(cluster, 1, 15);
  ASSERT_EQ(pod.links.size(), 4U);
  EXPECT_EQ(narrowest(pod), 2 * B / 4);
  ASSERT_EQ(core.links.size(), 4U);              // the pods' uplinks carry all that their leaves send up
  EXPECT_EQ(core.links[1].id, pod.links[1].id);  // the leaf's uplinks
  EXPECT_NE(core.links[2].id, pod.links[2].id);
  expect_sound(cluster);
}

TEST(FatTree, UplinksSayTheBandwidthOfEveryLevel) {
  Cluster cluster = cluster_of("fat-tree", 16, 1, {4, 2});
  cluster.fabrics[0].parameters["uplinks"] = {2, 1};
  const Route core = route_of(cluster, 0, 8);
  ASSERT_EQ(core.links.size(), 6U);
  std::multiset<double> widths;
  for (const RouteLink& link : core.links) widths.insert(link.bandwidth);
  EXPECT_EQ(widths, (std::multiset<double>{B, B, B, B, 2 * B, 2 * B}));
  expect_sound(cluster);
}

TEST(FatTree, PinnedMessagesTakeTheUplinkOfTheirDestination) {
  Cluster cluster = cluster_of("fat-tree", 8, 1, {4});
  cluster.fabrics[0].parameters["uplinks"] = {2};
  cluster.fabrics[0].parameters["routing"] = "static";
  const Route even = route_of(cluster, 0, 4), odd = route_of(cluster, 1, 5), also_even = route_of(cluster, 2, 6);
  EXPECT_EQ(even.links[1].id, also_even.links[1].id);
  EXPECT_NE(even.links[1].id, odd.links[1].id);
  EXPECT_EQ(even.links[1].bandwidth, B);
  expect_sound(cluster);
}

TEST(Rails, KeepEqualGpusOnOneLeaf) {
  Cluster cluster = cluster_of("rail-optimised", 4, 2, {2});
  cluster.fabrics[0].parameters["oversubscription"] = 2;
  EXPECT_EQ(hops_of(route_of(cluster, 0, 2)), 0);  // GPU 0 of nodes 0 and 1
  EXPECT_EQ(route_of(cluster, 0, 2).links.size(), 2U);
  EXPECT_EQ(hops_of(route_of(cluster, 0, 3)), 2);  // another rail
  EXPECT_EQ(hops_of(route_of(cluster, 0, 4)), 2);  // another unit
  EXPECT_EQ(narrowest(route_of(cluster, 0, 4)), 2 * B / 2);
  EXPECT_EQ(route_of(cluster, 0, 4).links.size(), 2U + 2U);
  expect_sound(cluster);
}

TEST(Rails, CrossInsideTheNodeWhereMessagesMoveFirst) {
  Cluster cluster = cluster_of("rail-optimised", 4, 2, {4});
  cluster.fabrics[0].parameters["crossing"] = "node";
  Fabric bus;
  bus.scope = Fabric::Scope::node;
  bus.groups = {0};
  bus.bandwidth = 10 * B;
  bus.latency = 2e-6;
  cluster.fabrics.push_back(bus);
  const Route crossing = route_of(cluster, 0, 3), rail = route_of(cluster, 1, 3), inside = route_of(cluster, 0, 1);
  ASSERT_EQ(crossing.links.size(), 4U);
  EXPECT_DOUBLE_EQ(crossing.latency, alpha + bus.latency);
  std::set<std::uint64_t> links, expected;
  for (const RouteLink& link : crossing.links) links.insert(link.id);
  for (const Route& part : {rail, inside})
    for (const RouteLink& link : part.links) expected.insert(link.id);
  EXPECT_EQ(links, expected);
  cluster.fabrics.pop_back();
  EXPECT_THROW(route_of(cluster, 0, 3), std::invalid_argument);
}

TEST(Dragonfly, ReachesEveryRouterOverAtMostOneGlobalLink) {
  // Balanced and of full size: a = 2p = 2h, groups = a·h + 1.
  const int p = 2, a = 4, h = 2, groups = a * h + 1;
  Cluster cluster = cluster_of("dragonfly", p * a * groups, 1, {p, a, h});
  cluster.fabrics[0].parameters["global_bandwidth"] = B / 2;
  std::map<std::uint64_t, std::set<std::pair<int, int>>> global;  // link → pairs of groups on it
  for (int from = 0; from < p * a * groups; ++from) {
    for (int to = 0; to < p * a * groups; ++to) {
      if (from == to) continue;
      const Route route = route_of(cluster, from, to);
      const int here = from / (p * a), there = to / (p * a);
      EXPECT_LE(hops_of(route), here == there ? 1 : 3);
      int long_links = 0;
      for (const RouteLink& link : route.links)
        if (link.bandwidth == B / 2) ++long_links, global[link.id].insert({here, there});
      EXPECT_EQ(long_links, here == there ? 0 : 1);
    }
  }
  EXPECT_EQ(global.size(), static_cast<std::size_t>(groups * (groups - 1)));
  for (const auto& [link, pairs] : global) EXPECT_EQ(pairs.size(), 1U);
  expect_sound(cluster_of("dragonfly", 24, 1, {2, 3, 2}));
}

TEST(Dragonfly, UsesAllLinksThatJoinTwoGroups) {
  const Cluster cluster = cluster_of("dragonfly", 16, 1, {2, 4, 2});  // two groups, eight links
  std::set<std::uint64_t> used;
  std::map<int, int> hops;
  for (int from = 0; from < 8; ++from)
    for (int to = 8; to < 16; ++to) {
      const Route route = route_of(cluster, from, to);
      for (const RouteLink& link : route.links) used.insert(link.id);
      ++hops[hops_of(route)];
    }
  std::size_t global = 0;
  for (const std::uint64_t id : used)
    if ((id >> 28 & 15) == static_cast<std::uint64_t>(LinkKind::long_link)) ++global;
  EXPECT_GE(global, 7U);  // sums of two router numbers below 4
  expect_sound(cluster);
}

TEST(Torus, GoesTheShorterWayAlongEachDimension) {
  const std::vector<int> sides{4, 3, 5};
  const Cluster cluster = cluster_of("torus", 60, 1, sides);
  for (int from = 0; from < 60; ++from) {
    for (int to = 0; to < 60; ++to) {
      if (from == to) continue;
      int distance = 0;
      for (int d = 0, stride = 1; d < 3; stride *= sides[d], ++d) {
        const int side = sides[d];
        const int apart = std::abs(from / stride % side - to / stride % side);
        distance += std::min(apart, side - apart);
      }
      const Route route = route_of(cluster, from, to);
      EXPECT_EQ(route.links.size(), static_cast<std::size_t>(distance)) << from << " to " << to;
      EXPECT_EQ(hops_of(route), distance - 1);
    }
  }
  expect_sound(cluster);
}

TEST(Torus, NeighboursInRankOrderHaveALinkOfTheirOwn) {
  const Cluster cluster = cluster_of("torus", 8, 1, {8});
  std::set<std::uint64_t> links;
  for (int rank = 0; rank < 8; ++rank) {
    const Route route = route_of(cluster, rank, (rank + 1) % 8);
    ASSERT_EQ(route.links.size(), 1U);
    EXPECT_TRUE(links.insert(route.links[0].id).second);
  }
}

TEST(PcieNode, SharesUplinksAndTheLinkBetweenProcessors) {
  Cluster cluster = cluster_of("pcie", 2, 8, {2, 2});
  cluster.fabrics[0].scope = Fabric::Scope::node;
  cluster.fabrics[0].parameters["global_bandwidth"] = B / 4;
  EXPECT_EQ(route_of(cluster, 0, 1).links.size(), 2U);
  EXPECT_EQ(route_of(cluster, 0, 2).links.size(), 4U);
  EXPECT_EQ(narrowest(route_of(cluster, 0, 2)), B);
  EXPECT_EQ(route_of(cluster, 0, 4).links.size(), 5U);
  EXPECT_EQ(narrowest(route_of(cluster, 0, 4)), B / 4);
  EXPECT_EQ(route_of(cluster, 0, 4).links[1].id, route_of(cluster, 1, 2).links[1].id);
  EXPECT_NE(route_of(cluster, 8, 12).links[1].id, route_of(cluster, 0, 4).links[1].id);  // another node's
  cluster.groups[0].nodes = 1;
  expect_sound(cluster);
}

TEST(Topologies, SayWhatDoesNotFit) {
  EXPECT_NE(refusal(cluster_of("torus", 8, 1, {3, 3})).find("multiply to 9, but the fabric has 8 ports"),
            std::string::npos);
  EXPECT_EQ(refusal(cluster_of("torus", 8, 1, {2, 4})), "");
  EXPECT_NE(refusal(cluster_of("dragonfly", 64, 1, {1, 2, 1})).find("32 groups"), std::string::npos);
  EXPECT_NE(refusal(cluster_of("fat-tree", 8, 1, {})), "");
  EXPECT_NE(refusal(cluster_of("pcie", 8, 1, {2, 2})), "");
  Cluster rails = cluster_of("rail-optimised", 4, 8, {2});
  rails.fabrics[0].scope = Fabric::Scope::node;
  EXPECT_NE(refusal(rails), "");
  EXPECT_EQ(topology_named("hypercube"), nullptr);
}

TEST(Topologies, HaveDefaultsForWhatIsNotGivenAndNothingElse) {
  Fabric tree = cluster_of("fat-tree", 8, 1, {4}).fabrics[0];
  tree.parameters.erase("hop_latency");
  EXPECT_EQ(number_of(tree, "oversubscription"), 1);
  EXPECT_EQ(number_of(tree, "link_bandwidth"), B);
  EXPECT_EQ(number_of(tree, "hop_latency"), 0);
  EXPECT_EQ(word_of(tree, "routing"), "adaptive");
  EXPECT_TRUE(counts_of(tree, "uplinks").empty());
  EXPECT_THROW(number_of(tree, "global_bandwidth"), std::logic_error);
  EXPECT_THROW(word_of(tree, "crossing"), std::logic_error);
  EXPECT_THROW(number_of(Fabric{}, "hop_latency"), std::logic_error) << "a star";
}

TEST(Topologies, DeclareEachParameterOnceWithMeaningAndDefault) {
  for (const Topology& topology : all_topologies()) {
    std::set<std::string> names;
    for (const TopologyParameter& each : topology.parameters) {
      EXPECT_TRUE(names.insert(each.name).second) << topology.name << " " << each.name;
      EXPECT_FALSE(each.meaning.empty()) << topology.name << " " << each.name;
      EXPECT_FALSE(each.otherwise.empty()) << topology.name << " " << each.name;
      EXPECT_EQ(each.kind == TopologyParameter::Kind::word, each.words != nullptr) << each.name;
    }
  }
}

TEST(Topologies, ThatShareAKeyGiveItOneType) {
  const std::size_t before = all_topologies().size();
  const auto declare = [](TopologyParameter parameter) {
    const RegisterTopology wrong{{.name = "made-up", .summary = "", .parameters = {std::move(parameter)}}};
  };
  EXPECT_THROW(declare({.name = "uplinks", .meaning = "", .otherwise = ""}), std::logic_error);
  EXPECT_THROW(declare({.name = "hop_latency", .meaning = "", .otherwise = "", .unit = ParameterUnit::bytes}),
               std::logic_error);
  EXPECT_EQ(all_topologies().size(), before);
}

TEST(Topologies, RunAtASpeedWhereTheirBandwidthsAndTimesAreGiven) {
  Fabric dragonfly = cluster_of("dragonfly", 8, 1, {2, 2}).fabrics[0];
  dragonfly.parameters["global_bandwidth"] = B;
  speed_up_parameters(dragonfly, ParameterUnit::bytes_per_second, 4);
  speed_up_parameters(dragonfly, ParameterUnit::seconds, 4);
  EXPECT_EQ(global_bandwidth(dragonfly), 4 * B);
  EXPECT_EQ(link_bandwidth(dragonfly), B) << "follows the port's";
  EXPECT_EQ(number_of(dragonfly, "hop_latency"), hop / 4);
  EXPECT_EQ(counts_of(dragonfly, "shape"), (std::vector<int>{2, 2}));
}

TEST(Topologies, CountPortsOverTheirMemberGroups) {
  Cluster cluster = cluster_of("fat-tree", 2, 4, {2});
  NodeGroup outside = cluster.groups[0], other = cluster.groups[0];
  outside.nodes = 3, other.gpus_per_node = 2;
  cluster.groups = {cluster.groups[0], outside, other};
  cluster.fabrics[0].groups = {0, 2};
  const FabricPorts ports = ports_of(cluster, cluster.fabrics[0]);
  EXPECT_EQ(ports.nodes, 4);
  EXPECT_EQ(ports.count, 12);
  const int first_of_last_group = 2 * 4 + 3 * 4;
  EXPECT_EQ(hops_of(route_of(cluster, first_of_last_group, first_of_last_group + 1)), 0);  // ports 8 and 9
  EXPECT_EQ(hops_of(route_of(cluster, 7, first_of_last_group)), 2);                        // ports 7 and 8
}

}  // namespace
}  // namespace slipway::test
