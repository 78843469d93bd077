#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "models/machine/collectives.h"
#include "models/machine/ring.h"

namespace slipway::test {

namespace {

constexpr double S = 1e9, alpha = 1e-5, B = 100e9, R = 400e9;

TEST(RingCost, AllReduceOfNMembersMovesTwiceNMinusOneOverN) {
  for (int n : {2, 3, 8, 64})
    EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, n, S, 0, B, 0), 2.0 * (n - 1) / n * S / B);
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, 8, S, alpha, B, 0), 14 * alpha + 1.75 * S / B);
}

TEST(RingCost, AllReduceIsAReduceScatterAndAnAllGather) {
  for (int n : {2, 5, 16})
    EXPECT_DOUBLE_EQ(ring_seconds(Collective::all_reduce, n, S, alpha, B, R),
                     ring_seconds(Collective::reduce_scatter, n, S, alpha, B, R) +
                         ring_seconds(Collective::all_gather, n, S, alpha, B, R));
}

// A round by round replay of the ring, written without the closed form. In each round every member sends one n-th of
// the tensor to its neighbour, which adds it in the first n−1 rounds.
TEST(RingCost, EqualsARoundByRoundReplay) {
  for (int n : {2, 4, 7}) {
    std::vector<double> clock(n, 0.0);
    for (int round = 0; round < 2 * (n - 1); ++round) {
      std::vector<double> next = clock;
      for (std::size_t i = 0; i < clock.size(); ++i) {
        const std::size_t from = (i + clock.size() - 1) % clock.size();
        next[i] = std::max(clock[i], clock[from]) + alpha + S / n / B;
        if (round < n - 1) next[i] += S / n / R;
      }
      clock = next;
    }
    EXPECT_NEAR(ring_seconds(Collective::all_reduce, n, S, alpha, B, R), clock[0], 1e-12);
  }
}

TEST(RingCost, SendIsLatencyPlusSizeOverBandwidth) {
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::send, 2, S, alpha, B, R), alpha + S / B);
  EXPECT_DOUBLE_EQ(ring_seconds(Collective::broadcast, 5, S, alpha, B, R), 4 * alpha + S / B);
}

TEST(RingCost, OfOneMemberOrNoCollectiveIsNothing) {
  for (Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                Collective::broadcast, Collective::send})
    EXPECT_EQ(ring_seconds(collective, 1, S, alpha, B, R), 0);
  EXPECT_EQ(ring_seconds(Collective::none, 8, S, alpha, B, R), 0);
}

TEST(RingCost, RefusesALinkWithoutBandwidth) {
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 2, S, alpha, 0, 0), std::invalid_argument);
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 0, S, alpha, B, 0), std::invalid_argument);
  EXPECT_THROW(ring_seconds(Collective::all_reduce, 2, -1, alpha, B, 0), std::invalid_argument);
}

TEST(RingTraffic, GivesTheBytesOfEachLinkAndTheRounds) {
  const RingTraffic traffic = ring_traffic(Collective::all_reduce, 4, 8.0);
  EXPECT_EQ(traffic.bytes_per_link, 12.0);
  EXPECT_EQ(traffic.rounds, 6);
  EXPECT_EQ(traffic.reduced_bytes, 6.0);
}

}  // namespace

// Collective algorithms: each against its own closed form, the trees against their definition, and the choice.

namespace {

constexpr double in_latency = 1e-6, in_bandwidth = 400e9, out_latency = 5e-6, out_bandwidth = 50e9;

Span span_of(int nodes, int per_node, int rails) {
  return {nodes, per_node, rails, {in_latency, in_bandwidth}, {out_latency, out_bandwidth}};
}

double all_reduce(Algorithm algorithm, const Span& span, double bytes) {
  const Links links = as_ring(algorithm, span);
  return ring_seconds(Collective::all_reduce, span.members(), bytes, links.latency, links.bandwidth, 0);
}

constexpr double sizes[] = {1.0, 1e5, 1e9};

TEST(MultiRing, UsesAllPortsOfANode) {
  for (const double S : sizes) {
    EXPECT_NEAR(all_reduce(Algorithm::multi_ring, span_of(4, 8, 8), S),
                2 * (28 * in_latency + 3 * out_latency) + 2 * 31.0 / 32 * S / in_bandwidth, 1e-12 + 1e-12 * S);
    EXPECT_NEAR(all_reduce(Algorithm::multi_ring, span_of(4, 8, 2), S),
                2 * (28 * in_latency + 3 * out_latency) + 2 * 31.0 / 32 * S / (2 * out_bandwidth), 1e-12 + 1e-12 * S);
  }
}

TEST(MultiRing, OfOneNodeOrOneMemberANodeIsTheRing) {
  for (const double S : sizes) {
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::multi_ring, span_of(1, 8, 1), S),
                     ring_seconds(Collective::all_reduce, 8, S, in_latency, in_bandwidth, 0));
    EXPECT_DOUBLE_EQ(all_reduce(Algorithm::multi_ring, span_of(8, 1, 1), S),
                     ring_seconds(Collective::all_reduce, 8, S, out_latency, out_bandwidth, 0));
  }
}

TEST(Tree, TakesTheLogarithmOfTheNodesInLatencyAndTwoBytesPerByteOfEveryPort) {
  for (const double S : sizes) {
    const double expected = 2 * 4 * out_latency + 2 * S / (0.9 * out_bandwidth);
    EXPECT_NEAR(all_reduce(Algorithm::tree, span_of(16, 1, 1), S), expected, 1e-9 * expected);
    const double inside = 2 * (7 * in_latency + 4 * out_latency) + 2 * S / (0.9 * 8 * out_bandwidth);
    EXPECT_NEAR(all_reduce(Algorithm::tree, span_of(16, 8, 8), S), inside,
                1e-9 * inside);  // 8/7·400 > 8·50
  }
}

TEST(Hierarchical, IsReduceScatterInsideAllReduceOfAPartBetweenAndAllGatherInside) {
  const Span span = span_of(4, 8, 8);
  for (const double S : sizes) {
    const double expected = ring_seconds(Collective::reduce_scatter, 8, S, in_latency, in_bandwidth, 0) +
                            ring_seconds(Collective::all_reduce, 4, S / 8, out_latency, out_bandwidth, 0) +
                            ring_seconds(Collective::all_gather, 8, S, in_latency, in_bandwidth, 0);
    EXPECT_NEAR(all_reduce(Algorithm::hierarchical, span, S), expected, 1e-9 * expected);
    // Four GPUs behind each port: a quarter of the bandwidth.
    const double shared = ring_seconds(Collective::reduce_scatter, 8, S, in_latency, in_bandwidth, 0) +
                          ring_seconds(Collective::all_reduce, 4, S / 8, out_latency, out_bandwidth / 4, 0) +
                          ring_seconds(Collective::all_gather, 8, S, in_latency, in_bandwidth, 0);
    EXPECT_NEAR(all_reduce(Algorithm::hierarchical, span_of(4, 8, 2), S), shared, 1e-9 * shared);
  }
}

TEST(Hierarchical, OfAReduceScatterIsHalfAnAllReduce) {
  const Span span = span_of(4, 8, 8);
  const Links links = as_ring(Algorithm::hierarchical, span);
  const double scatter = ring_seconds(Collective::reduce_scatter, 32, 1e8, links.latency, links.bandwidth, 0);
  EXPECT_NEAR(scatter,
              ring_seconds(Collective::reduce_scatter, 8, 1e8, in_latency, in_bandwidth, 0) +
                  ring_seconds(Collective::reduce_scatter, 4, 1e8 / 8, out_latency, out_bandwidth, 0),
              1e-9 * scatter);
}

TEST(AllToAll, SendsEachMemberItsShareOverThePortThatLeadsThere) {
  const Span flat = span_of(8, 1, 1), nodes = span_of(4, 8, 8);
  const auto seconds = [](const Span& span, double S) {
    const Links links = pairwise_as_ring(span);
    return ring_seconds(Collective::all_to_all, span.members(), S, links.latency, links.bandwidth, 0);
  };
  for (const double S : sizes) {
    const double alone = 7 * out_latency + 7.0 / 8 * S / out_bandwidth;
    EXPECT_NEAR(seconds(flat, S), alone, 1e-9 * alone);
    const double mixed = 7 * in_latency + 24 * out_latency + 24.0 / 32 * S / out_bandwidth;
    EXPECT_NEAR(seconds(nodes, S), mixed, 1e-9 * mixed);
  }
}

// Every node but the root has a parent, no cycles, no node with more than two children, and no node is inner in both.
TEST(DoubleBinaryTree, LetsEveryNodeBeInnerInOneTreeAtMost) {
  for (int nodes = 1; nodes <= 70; ++nodes) {
    const DoubleTree trees = double_binary_tree(nodes);
    std::vector<int> inner(nodes, 0);
    for (const std::vector<int>& parent : trees.parent) {
      ASSERT_EQ(parent.size(), static_cast<std::size_t>(nodes));
      std::vector<int> children(parent.size(), 0);
      EXPECT_EQ(std::count(parent.begin(), parent.end(), -1), 1) << nodes;
      for (int node = 0; node < nodes; ++node) {
        int depth = 0;
        for (int at = node; at >= 0; at = parent[at])
          ASSERT_LE(++depth, 2 + static_cast<int>(std::ceil(std::log2(nodes)))) << nodes;
        if (const int above = parent[node]; above >= 0) ++children[above];
      }
      for (std::size_t node = 0; node < children.size(); ++node) {
        EXPECT_LE(children[node], 2);
        inner[node] += children[node] > 0 ? 1 : 0;
      }
    }
    // The root has one child only; where nodes are odd it may be inner in both.
    EXPECT_LE(std::count(inner.begin(), inner.end(), 2), nodes % 2 == 0 ? 0 : 1) << nodes;
  }
}

TEST(DoubleBinaryTree, HasAsManyEdgesAtItsBusiestNodeAsTheClosedFormChargesHalvesOfTheBytes) {
  for (int nodes = 2; nodes <= 70; ++nodes) {
    std::vector<int> edges(nodes, 0);
    for (const std::vector<int>& parent : double_binary_tree(nodes).parent)
      for (std::size_t node = 0; node < parent.size(); ++node)
        if (parent[node] >= 0) ++edges[node], ++edges[parent[node]];
    EXPECT_EQ(*std::max_element(edges.begin(), edges.end()), 2 * tree_bytes_of_a_node(nodes)) << nodes;
  }
}

TEST(Crossover, TreesWinWhereLatencyRulesAndRingsWhereBandwidthDoes) {
  const Span span = span_of(64, 1, 1);
  // 2·(63 − 6)·α saved against 2/0.9 − 2·63/64 bytes more per byte.
  const double crossover = 2 * 57 * out_latency * out_bandwidth / (2 / 0.9 - 2 * 63.0 / 64);
  EXPECT_LT(all_reduce(Algorithm::tree, span, 0.99 * crossover),
            all_reduce(Algorithm::multi_ring, span, 0.99 * crossover));
  EXPECT_GT(all_reduce(Algorithm::tree, span, 1.01 * crossover),
            all_reduce(Algorithm::multi_ring, span, 1.01 * crossover));
}

}  // namespace

}  // namespace slipway::test
