// What follows the last backward of a step, per block and per rank:
//
//   bucket ─ norm_grad (tensor) ─ tied_grad ─ ar_grad | rs_grad ─┬─ grad_norm ─ norm_reduce ─┐
//                                          └─ worker_norm           └──────── opt ◄─────────────┘
//   opt ─ ag_param (ZeRO 1, 2) ─► first use in the next step
//
// Each arrow is a buffer, so the order of a parameter's reductions and its update is a data dependency.
// worker_norm, where the norm test asks for it, reads what the reduction is about to overwrite: the reduction waits for it.
// ZeRO 2 and 3 have reduced each micro-batch already (lower_passes.cpp): their buckets arrive here done,
// and what tensor ranks have found parts of is summed over the tensor group afterwards.
// Private to the lowering: lower_step_end.cpp (uses, reductions, update, gathers) and step_end_norms.cpp (norms and K-FAC's
// preconditioning). Guarded by tests/lowering_test.cpp and tests/worker_norms_test.cpp.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "schedules/graph/compute_places.h"
#include "schedules/graph/lowering_state.h"

namespace slipway {

class StepEnd {
 public:
  explicit StepEnd(LoweringState& state)
      : state_(state), places_(state), scalars_(state.placed.size()), updated_(state.buckets.size()) {}

  void run() {
    find_first_and_last_uses();
    open_buckets();
    for (int stage = 0; stage < state_.stages(); ++stage) reduce_norms(stage);
    for (int copy = 0; copy < state_.graph.placement.copies; ++copy) reduce_tied_embedding(copy);
    if (state_.graph.worker_norms)
      for (int stage = 0; stage < state_.stages(); ++stage) measure_workers(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) reduce_over_data(part);
    for (int stage = 0; stage < state_.stages(); ++stage) precondition(stage);
    if (joins_all_ranks(state_.graph)) reduce_global_norm();
    for (int stage = 0; stage < state_.stages(); ++stage) step(stage);
    for (int part = 0; part < state_.graph.placement.parts(); ++part) gather_parameters(part);
    limit_weight_prefetch(state_);
    limit_unreduced_gradients(state_);
    places_.write();
  }

 private:
  int members() const { return state_.members(); }
  int rank(int stage, int k) const { return state_.groups.rank(state_.pipeline_rank(stage), k); }
  const BlockRange& range(int stage) const { return state_.graph.stages[static_cast<std::size_t>(stage)]; }
  bool reduces_later() const { return !state_.shards_gradients_per_micro_batch(); }
  double scalar_bytes() const { return state_.graph.worker_norms ? 16 : 8; }
  std::size_t key(int rank, int block) const { return state_.row(rank, block); }
  // Parameters of a tensor shard of these blocks that one rank updates.
  double shard_elements(const BlockRange& blocks) const;
  void place(int rank, TaskId task) { places_.at_end(rank, task); }

  void find_first_and_last_uses();
  void open_buckets();
  void reduce_norms(int stage);
  void reduce_tied_embedding(int copy);
  void measure_workers(int stage);
  void reduce_over_data(int part);  // all copies of it together
  void precondition(int stage);
  void gather_preconditioned(Work work, const std::vector<int>& blocks);
  void while_it_runs(TaskId task, int rank, double bytes);
  void reduce_global_norm();
  void step(int stage);
  void gather_parameters(int part);
  // What has made a bucket; of passes, segment.
  WorkKind maker_of(BufferId bucket) const {
    const std::int32_t writer = state_.graph.buffers[bucket].writer;
    if (writer == none) return WorkKind::segment;
    const Task& task = state_.graph.tasks[static_cast<std::size_t>(writer)];
    return state_.graph.works[static_cast<std::size_t>(task.work)].kind;
  }
  // One collective of `work` on each member's bucket of (rank, block) pairs; the buckets become its
  // outputs.
  TaskId on_buckets(int communicator, const Work& work, const std::vector<std::pair<int, int>>& at);

  LoweringState& state_;
  ComputePlaces places_;
  std::vector<TaskId> first_use_, last_use_;  // per (rank, block): segments in compute order
  std::vector<BufferId> scalars_;             // per rank: the global norm
  std::vector<BufferId> updated_;             // per (rank, block): parameters after the step
};

}  // namespace slipway
