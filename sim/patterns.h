// The pairs of members between which the flows of a message run, and how much each carries.
//
//   line          sender → receiver
//   ring          0 → 1 → … → n−1 → 0
//   rails         nodes of g members; inside a node all of it around its ring, to the equal member of the next node a
//                 g-th (multi-ring)
//   between       only the edges of rails between the nodes (hierarchical; the time inside is paid before)
//   trees         up and down the edges of two trees over the nodes for each member, half of its part on each,
//                 and along the chains inside
//   pairs         every member to every other (all-to-all; Gloo's all-gather and reduce-scatter)
//
// `share` is in units of the bytes that a ring's link carries (RingTraffic::bytes_per_link). For an all-reduce of S
// over n members these are X = 2(n−1)/n·S. Uncontended, the slowest link of a pattern is busy for as long as the closed
// form of its algorithm (models/machine/collectives.h). Guarded by tests/sim/algorithm_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/machine/collectives.h"

namespace slipway::sim {

enum class Pattern : std::uint8_t { line, ring, rails, between, trees, pairs };
constexpr std::size_t pattern_kinds = 6;

struct MemberEdge {
  std::size_t from = 0, to = 0;  // positions in the communicator
  double share = 1;
};

// `span` describes the n members for the patterns rails, between and trees.
std::vector<MemberEdge> edges_of(Pattern pattern, std::size_t members, const Span& span);

}  // namespace slipway::sim
