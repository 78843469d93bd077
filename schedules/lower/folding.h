// Members of a pipeline rank that do the same at the same time are lowered and simulated once.
//
//   nodes of 8 GPUs, tensor 4        node 0: 0 1 2 3 | 4 5 6 7     node 1: 8 9 10 11 | 12 13 14 15   ...
//   tensor ring                      0 → 1 → 2 → 3 → 0                       folded: 0 → 0
//   data ring                        0 → 4 (bus) → 8 (network) → 12 (bus)    folded: 0 → 4 (bus) → 0
//   (network)
//
// Member (replica m, tensor t) is stood for by (m mod replicas, t mod tensor). That is right if each member
// has the machine of its stand-in, and its neighbours in every ring, and in the pipeline, are as far away,
// over the same fabric, as those of the stand-in. (A slow GPU, port or pair of nodes is like one as slow only.)
// Then every port carries the messages of the port that stands for it at the same dates, so max-min sharing
// gives them the same bandwidth: the folded step is the step of all ranks, contention included. Guarded by
// tests/schedules/folding_test.cpp and tests/sim/stragglers_test.cpp: both are simulated, over random layouts and clusters.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/machine.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// What a step joins beyond its layout's groups.
struct JoinedRanks {
  bool world = false;                   // a scalar is reduced over all (joins_all_ranks)
  std::vector<std::int32_t> embedding;  // ZeRO 2 and 3 reduce a tied table over all members of these pipeline ranks, in
                                        // one ring (groups.h); empty: no such ring
};
JoinedRanks joined_ranks(const Step& step);

// The one with the fewest members; all where none is like another, or why_unfoldable says why nobody asks. Where GPUs
// share a port, whole nodes.
Folding folding_of(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined);

// Machines whose ranks share cores or a GPU; fabrics with a topology that has links for members to share; collectives
// that shall be trees; a fabric of so little latency that the 8 bytes of the gradient norm are traffic
// (sim/fidelity.h). nullptr: nothing speaks against it.
const char* why_unfoldable(const Cluster& cluster, const Layout& layout, const JoinedRanks& joined);

}  // namespace slipway::schedules
