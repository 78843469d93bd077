// On a cluster whose nodes or links are not alike: where the stages of the best layouts go, and how many
// layers they hold. (Pipette's question: Yim et al. 2024, "Pipette: Automatic Fine-grained Large Language
// Model Training Configurator for Real-World Clusters".)
//
//   nodes   0   1   2   3        link 1─2 is weak        pipeline rank  0   1   2   3
//                                                        on node        0   1   3   2
//
//   start: as the layout is; each order of the node groups; each of these with layers balanced by time
//   move:  swap two nodes that are not alike, or move a layer from one stage to another (scenarios/search/variants.h)
//
// Where few variants are possible all of them are considered; else the best move is taken until none helps,
// out of so many at a time, drawn by run.seed where there are more. A variant is simulated as `slipway
// simulate` does it unless its bound (estimate.h) is above what has been simulated already, so that the
// best of those considered is found, and a refined row is never slower than the row it came from. That no
// other layout would be the best in its own best order is not proven. The answer does not depend on the
// number of workers.
// Guarded by tests/search_refine_test.cpp: the best of every order and every split, on small clusters.
#pragma once

#include "scenarios/search/search.h"

namespace slipway {

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

}  // namespace slipway
