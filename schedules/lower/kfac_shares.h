// The Linears of a rank, which of them it inverts and preconditions for its replicas, and the memory that this takes
// (exec/rank/kfac.h allocates the same):
//
//   throughout         inverses in use, of its share
//   in a refresh       sums of all factors, from the first curvature of their kind to the last inversion;
//                      an inverse is made in its factor's place
//   curvature          rows that are widened or scaled before they are multiplied
//   inversion          on a GPU as much as the factor again: the columns of the solve
//   precondition       one matrix of the longest of its share; two where gradients and inverses differ in dtype
//   .ag_precondition   what all replicas have preconditioned, each share padded to the longest
//
// A solver's own scratch (cuSOLVER's) is not counted. Guarded by tests/schedules/kfac_test.cpp and, against
// measurements of ranks, tests/scenarios/execute_kfac_command_test.cpp.
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
// Linears of one pipeline rank: by block, then stage, then in forward order. `stages`: blocks of each stage, also of
// copies.
std::vector<KfacPlace> kfac_places(const std::vector<Block>& blocks, const Placement& placement,
                                   const std::vector<BlockRange>& stages, int pipeline);
// Returns the number of the owning replica for each entry of `places`.
std::vector<int> kfac_owners(const std::vector<KfacPlace>& places, int replicas);

// Ranks with the same stages, in the order of the graph's communicator for gradients; {rank} where it has none.
std::vector<std::int32_t> kfac_replicas(const TaskGraph& graph, std::int32_t rank);
// The part of kfac_places that a rank inverts.
std::vector<KfacPlace> kfac_share(const TaskGraph& graph, std::int32_t rank);

// Bytes; the maximum over replicas for most_kfac_inverse_bytes.
double kfac_inverse_bytes(const std::vector<KfacPlace>& share, Dtype weights);
double most_kfac_inverse_bytes(const std::vector<KfacPlace>& places, int replicas, Dtype weights);
double kfac_curvature_bytes(const WorkShape& shape, const KfacLinear& linear, bool of_input);
double kfac_inversion_bytes(const Machine& machine, std::int64_t side, Dtype weights);
double kfac_precondition_bytes(const TaskGraph& graph, std::int32_t rank, int stage);
double kfac_gather_bytes(const TaskGraph& graph, std::int32_t rank, int part);

}  // namespace slipway::schedules
