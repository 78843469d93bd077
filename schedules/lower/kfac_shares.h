// Which Linears a rank has, which of them it inverts and preconditions for its replicas, and what that
// holds in memory (exec/rank/kfac.h allocates it so):
//
//   throughout            inverses in use, of its share
//   in a refresh          sums of all factors, from the first curvature of their kind to the last
//   inversion; an inverse is
//                         made in its factor's place
//   curvature             rows that are widened or scaled before they are multiplied
//   inversion             on a GPU as much as the factor again: the columns that are solved for
//   precondition          one matrix of the longest of its share; two where gradients have another dtype
//   than inverses .ag_precondition      what all replicas have preconditioned, each share padded to the
//   longest
//
// A solver's own scratch (cuSOLVER's) is in nobody's figures. Guarded by tests/schedules/kfac_test.cpp and,
// against what ranks measure, tests/scenarios/execute_kfac_command_test.cpp.
#pragma once

#include <vector>

#include "models/machine/machine.h"
#include "models/training/kfac.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct KfacPlace {
  int stage = 0, block = 0;
  KfacLinear linear;
};
// Of one pipeline rank: by block, then stage, then in forward order. `stages`: blocks of each stage, copies
// too.
std::vector<KfacPlace> kfac_places(const std::vector<Block>& blocks, const Placement& placement,
                                   const std::vector<BlockRange>& stages, int pipeline);
// Per entry of `places`: the replica, by number.
std::vector<int> kfac_owners(const std::vector<KfacPlace>& places, int replicas);

// Ranks with the same stages, in the order of the graph's communicator for gradients; {rank} where it has
// none.
std::vector<std::int32_t> kfac_replicas(const TaskGraph& graph, std::int32_t rank);
// What of kfac_places a rank inverts.
std::vector<KfacPlace> kfac_share(const TaskGraph& graph, std::int32_t rank);

double kfac_inverse_bytes(const std::vector<KfacPlace>& share, Dtype weights);
// Of the replica that has most.
double most_kfac_inverse_bytes(const std::vector<KfacPlace>& places, int replicas, Dtype weights);
double kfac_curvature_bytes(const WorkShape& shape, const KfacLinear& linear, bool of_input);
double kfac_inversion_bytes(const Machine& machine, std::int64_t side, Dtype weights);
double kfac_precondition_bytes(const TaskGraph& graph, std::int32_t rank, int stage);
double kfac_gather_bytes(const TaskGraph& graph, std::int32_t rank, int part);

}  // namespace slipway::schedules
