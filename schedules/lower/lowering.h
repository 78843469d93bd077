// From a scenario's numbers to the task graph. The lowering cuts actions into segments and adds all communication. It
// also adds what a layout needs: tied embeddings, sequence-parallel norms, gradient norm, ZeRO traffic, recomputation.
// Then the global order is computed once and stored.
#pragma once

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct LoweringInput {
  Model model;
  Layout layout;
  std::string schedule = "1f1b";
  WorkShape shape;  // micro_batch, sequence, sharding, kernels, dtype
  Recompute recompute = Recompute::none;
  std::int64_t global_batch = 1;  // sequences
  int slices = 1;
  double clip_norm = 0;
  Dtype gradient_dtype = Dtype::float32;
  bool worker_norms =
      false;          // measures the norms of workers' gradients for the norm test (models/training/batch_rules.h)
  bool kfac = false;  // a preconditioning task per stage before the update, inverses in memory
  bool overlap_grad_reduce = true;       // reduce each block's gradient as soon as its last backward is done
  bool blocking_transfers = false;       // a rank goes on only after its message to another stage is sent
  const ActionLists* actions = nullptr;  // instead of the named schedule's (an imported CSV)
  // The members of each pipeline rank that have tasks: folding_of (folding.h), or all. The list replay and the
  // simulator take a folded graph; the checks and bundles do not.
  Folding folding;
};

// Why no step can measure the norms of workers' gradients; empty: steps can.
std::string why_no_worker_norms(const Model& model, const Layout& layout, int copies, int slices, bool splits_backward);

// Micro-batches, slices and copies of a step. Throws std::invalid_argument when the batch does not divide.
ScheduleShape step_shape(const LoweringInput& input);
// The given actions or those of the named schedule. Throws std::invalid_argument when the schedule is unknown or
// refuses the shape.
ActionLists step_actions(const LoweringInput& input);

// Bytes that each pipeline rank's members hold throughout a step: weights, gradients and optimizer of their shard.
// K-FAC's inverses are those of the replica with most.
std::vector<StaticBytes> static_bytes_of(const LoweringInput& input);
// The same for `elements` parameters (of a tensor shard) on one rank; `copies` of the model in the pipeline.
StaticBytes static_bytes_of(double elements, const Layout& layout, Dtype dtype, Dtype gradient_dtype, int copies = 1);

// The graph without `order`. Throws std::invalid_argument with the reason for an impossible combination.
TaskGraph lower(const LoweringInput& input);

// Seconds of each task; size = number of tasks. schedules/time/durations.h makes them.
using Durations = std::vector<double>;

// Sets graph.order: topological order by start time in a list replay with these durations, ties by id.
void set_global_order(TaskGraph& graph, const Durations& durations);

}  // namespace slipway::schedules
