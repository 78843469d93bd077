// Where the compute tasks of a step's end stand in their rank's order: behind the passes, or in between, right after the
// task that has made what they read.
//
//   passes   │ 0B3.L2 │ 0B3.L1 │ 0B3.L0 │                  at_end   grad_norm, opt, ...
//   written  │ 0B3.L2 │ 0.L2.worker_norm │ 0B3.L1 │ 0.L1.worker_norm │ 0B3.L0 │ ... │ grad_norm │ opt │
//
// Guarded by tests/worker_norms_test.cpp.
#pragma once

#include <vector>

#include "schedules/graph/lowering_state.h"

namespace slipway {

class ComputePlaces {
 public:
  // `state` has the passes in place, and must outlive this.
  explicit ComputePlaces(LoweringState& state) : state_(state), behind_(state.placed.size()) {}
  // Behind everything of the rank that has a place yet.
  void at_end(int rank, TaskId task);
  // Right after `task` of the passes. `waits_for_message`: one task of the passes later, where there is one, so that the
  // lane has something to do while the message travels.
  void behind(int rank, TaskId task, TaskId follower, bool waits_for_message);
  // To graph.compute_order. Once, at the end.
  void write();

 private:
  struct Behind {
    TaskId task, follower;
    bool waits_for_message;
  };
  LoweringState& state_;
  std::vector<std::vector<Behind>> behind_;  // per rank
};

}  // namespace slipway
