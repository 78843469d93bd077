// Variants of one layout on a cluster with unequal machines or links: the layers of each stage, and the order in which
// ranks fill the nodes (private to search_refine).
//
//   variant     layers 12 12 4 4, nodes 0 1 2 3        every order, every split     where they are few
//   move        a layer from one stage to another       every move                   from one variant
//               two nodes that are not alike swap places
//
// Nodes are alike when they are of one group and neither has a weak link. Swapping them changes nothing. A middle stage
// holds at least one layer. The first may hold only the embedding, the last only the head.
// Guarded by tests/scenarios/refine_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {

struct Variant {
  std::vector<int> layers, nodes;  // layout.split, layout.placement
  auto operator<=>(const Variant&) const = default;
};

// The allowed changes.
struct Freedom {
  bool splits = true, orders = true;
};

Variant variant_of(const Scenario& scenario, const Layout& layout);
// All variants; unset with more than `most`, or with more nodes than can be ordered in every way.
std::optional<std::vector<Variant>> every_variant(const Cluster& cluster, const Variant& own, Freedom free,
                                                  std::size_t most);
// The nodes of each group together, with the groups in every order but their own. For few groups.
std::vector<Variant> in_other_group_orders(const Cluster& cluster, const Variant& own);
// All moves, or `most` of them, drawn by `seed` and `draw`.
std::vector<Variant> moves_of(const Cluster& cluster, const Variant& from, Freedom free, std::size_t most,
                              std::uint64_t seed, std::uint64_t draw);

// Refines the best layouts on a cluster with unequal nodes or links: the nodes of the stages and the layers that they
// hold. The subject of Yim et al. 2024, "Pipette: Automatic Fine-grained Large Language Model Training Configurator for
// Real-World Clusters".
//
//   nodes   0   1   2   3        link 1─2 is weak        pipeline rank  0   1   2   3
//                                                        on node        0   1   3   2
//
//   start: as the layout is; each order of the node groups; each of these with layers balanced by time
//   move:  swap two nodes that are not alike, or move a layer from one stage to another
//
// Few variants are all considered. Otherwise the best move is taken until none helps, out of a limited number at a
// time, drawn by run.seed. A variant is simulated as `slipway simulate` does it, unless its bound (estimate.h) is above
// a simulated step. So the best of those considered is found, and a refined row is never slower than its original. It
// is not proven that no other layout would be the best in its own best order. The answer does not depend on the number
// of workers.
// Guarded by tests/scenarios/refine_test.cpp: the best of every order and every split, on small clusters.

// True with several machines, or weak pairs of nodes.
bool is_uneven(const Cluster& cluster);

struct Refinement {
  PricedLayout row;
  int simulated = 0;        // variants, except those with a bound above the answer
  bool exhaustive = false;  // every order and every split was considered
};
// `row` must be simulated. `splits`, `orders`: allowed changes. Layers move only where machines differ.
Refinement refined(const Scenario& scenario, const PricedLayout& row, bool splits, bool orders,
                   const SearchOptions& options);

}  // namespace slipway::scenarios
