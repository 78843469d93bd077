// The algorithm of a communicator's collective, and its seconds without contention.
//
//   ring          0 → 1 → … → n−1 → 0 in the order of the ranks; one port of each node is used
//   multi-ring    as many rings as a node has members; ring i leaves and enters every node by member i, so that all
//                 ports are used (NCCL's channels)
//   tree          all-reduce only: up and down two binary trees over the nodes; half of the nodes are leaves in one
//                 tree and inner in the other (Sanders, Speck and Träff 2009; NCCL since 2.4); chains inside the
//                 nodes; one pair of trees per member of a node
//   hierarchical  reduce-scatter inside the nodes, all-reduce of each member's part between the nodes, all-gather
//                 inside (Jia et al. 2018, section 3.3)
//   nccl          multi-ring or tree, whichever takes less, as NCCL's tuner chooses (src/graph/tuning.cc)
//   gloo          all-reduce: the ring in rank order (Gloo's allreduce.cc, which c10d calls without naming another
//                 algorithm); all-gather and reduce-scatter: every member sends each other one its part directly, in n−1
//                 rounds (exec/transport/cpu/transport_gloo.cpp). Ranks on processors send so.
//
// α and β of ring i's links: inside a node α_in, B_in; between nodes α_out, B_out per port; N nodes of g
// members, r ports per node, n = N·g. Seconds of an all-reduce of S bytes:
//
//   ring          2(n−1)·α + 2(n−1)/n·S/B                                       α, B: the slowest link's
//   multi-ring    2((n−N)·α_in + (N−1)·α_out) + 2(n−1)/n·S / min(B_in, r·B_out)
//   tree          2((g−1)·α_in + ⌈log₂N⌉·α_out) + 2·S / (0.9·min(g/(g−1)·B_in, 4/min(N, 4)·r·B_out))
//   hierarchical  2((g−1)·α_in + (N−1)·α_out) + 2(g−1)/g·S/B_in + 2(N−1)/N·S/(r·B_out)
//   gloo          as ring. All-gather: (g−1)·α_in + (n−g)·α_out + max((g−1)/n·S/B_in, g·(n−g)/n·S/(r·B_out)), so where a
//                 node's members share one port it carries g·(n−g)/(n−1) times what a ring sends over it
//
// Half of the bytes crosses each edge of a tree, both ways. Over both trees the busiest of N nodes has min(N, 4) edges,
// so two or three nodes send less than two bytes per byte. (NCCL's tuner, too, gives trees over two nodes more.)
// Latencies and the tree's two bytes per byte and 0.9 are those of NCCL's tuner. Its protocols (LL, LL128) and its
// corrections for medium sizes are not modelled. Reduce-scatter and all-gather are half an all-reduce, and rings in
// NCCL. All are linear in S, so each is a ring on other links: `as_ring` returns the α and B for which ring_seconds
// gives the values above. Guarded by tests/models/collectives_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/model/names.h"
#include "models/namespaces.h"

namespace slipway::models {

enum class Algorithm : std::uint8_t { ring, multi_ring, tree, hierarchical, nccl, gloo };
inline constexpr std::array algorithm_names{
    Named{Algorithm::ring, "ring"}, Named{Algorithm::multi_ring, "multi-ring"},
    Named{Algorithm::tree, "tree"}, Named{Algorithm::hierarchical, "hierarchical"},
    Named{Algorithm::nccl, "nccl"}, Named{Algorithm::gloo, "gloo"}};
constexpr const char* name_of(Algorithm algorithm) { return name_in(algorithm_names, algorithm); }

struct Links {
  double latency = 0, bandwidth = 0;  // s, bytes/s of one port and direction
  bool operator==(const Links&) const = default;
};

// The places of a communicator's members on the network: equally many on every node.
struct Span {
  int nodes = 1, per_node = 1;
  int rails = 1;          // ports to the other nodes that a node's members have
  Links inside, between;  // of the slowest neighbours inside a node; of equal members of neighbouring nodes
  // Most bytes/s of one message between a weak pair of nodes: where one is the next node of the other, where they are
  // neighbours in a tree (double_binary_tree), and of any two of the nodes (for pairwise messages).
  double next_cap = std::numeric_limits<double>::infinity(), tree_cap = next_cap, pair_cap = next_cap;
  int members() const { return nodes * per_node; }
  bool operator==(const Span&) const = default;
};

// Share of a ring's bandwidth that NCCL expects of its trees (src/graph/tuning.cc, 2.12).
constexpr double tree_efficiency = 0.9;

// Bytes per byte of an all-reduce that the busiest node sends, and receives, over the edges of
// double_binary_tree(nodes).
double tree_bytes_of_a_node(int nodes);

// For multi_ring, tree (all-reduce) and hierarchical. Requires at least two members.
Links as_ring(Algorithm algorithm, const Span& span);
// The same for all_to_all, pairwise: each member sends (n−1) messages of S/n, (g−1) of them inside its node.
//   (g−1)·α_in + (n−g)·α_out + max((g−1)/n·S/B_in, g·(n−g)/n·S/(r·B_out))
// `inside`, `between`: bytes over the links inside nodes and between them, by those of all rows (token_copies.h).
Links pairwise_as_ring(const Span& span, double inside = 1, double between = 1);

// The two trees over `nodes` nodes: the parent of each node, −1 for the root.
struct DoubleTree {
  std::vector<int> parent[2];
};
DoubleTree double_binary_tree(int nodes);

}  // namespace slipway::models
