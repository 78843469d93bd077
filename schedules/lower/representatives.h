// Members of a pipeline rank that do the same at the same time are lowered and simulated once.
//
//   nodes of 8 GPUs, tensor 4        node 0: 0 1 2 3 | 4 5 6 7     node 1: 8 9 10 11 | 12 13 14 15   ...
//   tensor ring                      0 → 1 → 2 → 3 → 0                       represented: 0 → 0
//   data ring                        0 → 4 (bus) → 8 (network) → 12 (bus)    represented: 0 → 4 (bus) → 0 (network)
//
// The representative of member (replica m, tensor t) is (m mod replicas, t mod tensor). This is right if each member
// has the machine of its representative. Its neighbours in every ring and in the pipeline must be as far away as the
// representative's, over the same fabric. Where collectives use all ports of a node (models/machine/collectives.h), each
// member has a neighbour inside and one in the next node, so all members are equivalent. Members of an expert group are
// equivalent if their tokens go to as many others over each fabric. With two copies of the model in one pipeline, rank
// p−1−r must do for one copy what rank r does for the other: then data groups of both are rings of equivalent ranks. A
// slow GPU, port or pair of nodes equals only one that is as slow. Then every port carries the messages of its
// representative's port at the same dates, so max-min sharing gives them the same bandwidth. The step of the
// representatives is the step of all ranks, contention included. Guarded by tests/schedules/representatives_test.cpp
// and tests/sim/degraded_step_test.cpp, which simulate both for random cases.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// Ranks that a step joins beyond its layout's groups.
struct JoinedRanks {
  bool world = false;                   // a scalar is reduced over all (joins_all_ranks)
  bool experts = false;                 // tokens travel to the ranks of their experts (dispatches_tokens)
  int balanced = 1;                     // data ranks whose experts a loss balances together
  int copies = 1;                       // of the model in one pipeline
  bool mirrored = false;                // two copies: rank p−1−r of p does for one what rank r does for the other
  std::vector<int> kv_copies;           // tensor ranks that share key-value heads (models/model/model.h)
  std::vector<std::int32_t> embedding;  // pipeline ranks over whose members ZeRO 2 and 3 reduce a tied table in one
                                        // ring (groups.h); empty: no such ring
};
JoinedRanks joined_ranks(const Step& step);

// The valid representatives with the fewest members. They are all members where no two are alike or
// why_no_representatives gives a reason. Where GPUs share a port, it has whole nodes.
Representatives representatives_of(const PricedCluster& cluster, const Layout& layout, const JoinedRanks& joined);

// Reasons: machines whose ranks share cores or a GPU; fabrics with a topology that has links for members to share;
// collectives that take trees; a fabric of so little latency that the 8 bytes of the gradient norm are traffic
// (sim/fidelity.h). nullptr: no reason.
const char* why_no_representatives(const PricedCluster& cluster, const Layout& layout, const JoinedRanks& joined);

}  // namespace slipway::schedules
