// The ways to lay one layout on a cluster that is not alike everywhere: how many layers each stage holds,
// and in which order ranks fill the nodes (private to search_refine).
//
//   variant     layers 12 12 4 4, nodes 0 1 2 3        every order, every split     where they are few
//   move        a layer from one stage to another       every move                   from one variant
//               two nodes that are not alike swap places
//
// Nodes are alike when they are of one group and no link of either is weak: to swap them changes nothing. A
// stage between the first and the last holds a layer at least; the first may hold the embedding alone, the
// last the head.
// Guarded by tests/search_refine_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/scenario.h"

namespace slipway {

struct Variant {
  std::vector<int> layers, nodes;  // layout.split, layout.placement
  auto operator<=>(const Variant&) const = default;
};

// What may change.
struct Freedom {
  bool splits = true, orders = true;
};

Variant variant_of(const Scenario& scenario, const Layout& layout);
// Nothing where there are more than `most`, or more nodes than can be ordered in every way.
std::optional<std::vector<Variant>> every_variant(const Cluster& cluster, const Variant& own, Freedom free,
                                                  std::size_t most);
// The nodes of each group together, the groups in every order but their own; for few groups.
std::vector<Variant> in_other_group_orders(const Cluster& cluster, const Variant& own);
// All moves, or `most` of them drawn by `seed` and `draw`.
std::vector<Variant> moves_of(const Cluster& cluster, const Variant& from, Freedom free, std::size_t most,
                              std::uint64_t seed, std::uint64_t draw);

}  // namespace slipway
