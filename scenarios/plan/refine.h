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
// Guarded by tests/scenarios/refine_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/plan/search.h"

namespace slipway::scenarios {

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

// On a cluster whose nodes or links are not alike: where the stages of the best layouts go, and how many
// layers they hold. (Pipette's question: Yim et al. 2024, "Pipette: Automatic Fine-grained Large Language
// Model Training Configurator for Real-World Clusters".)
//
//   nodes   0   1   2   3        link 1─2 is weak        pipeline rank  0   1   2   3
//                                                        on node        0   1   3   2
//
//   start: as the layout is; each order of the node groups; each of these with layers balanced by time
//   move:  swap two nodes that are not alike, or move a layer from one stage to another (scenarios/plan/refine.h)
//
// Where few variants are possible all of them are considered; else the best move is taken until none helps,
// out of so many at a time, drawn by run.seed where there are more. A variant is simulated as `slipway
// simulate` does it unless its bound (estimate.h) is above what has been simulated already, so that the
// best of those considered is found, and a refined row is never slower than the row it came from. That no
// other layout would be the best in its own best order is not proven. The answer does not depend on the
// number of workers.
// Guarded by tests/scenarios/refine_test.cpp: the best of every order and every split, on small clusters.

// Several machines, or weak pairs of nodes.
bool is_uneven(const Cluster& cluster);

struct Refinement {
  PricedLayout row;
  int simulated = 0;        // variants; not counted are those whose bound is above the answer
  bool exhaustive = false;  // of every order and every split
};
// `row` must be simulated. `splits`, `orders`: what may change. Layers move only where machines differ.
Refinement refined(const Scenario& scenario, const PricedLayout& row, bool splits, bool orders,
                   const SearchOptions& options);

}  // namespace slipway::scenarios
