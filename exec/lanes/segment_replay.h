// Runs a segment operator by operator, or replays a recording of it: on a GPU a CUDA graph, whose start costs the host
// one call instead of hundreds.
//
//   steps 0, 1   compute(inputs)                                   as it is: libraries and caches set themselves up
//   step 2       copy inputs ─► record compute(copies) ─► replay   once per recording (exec/lanes/replay_plan.h)
//   then         copy inputs ─► replay ─► copy outputs             `compute` is not called again
//
// A replay reads and writes the addresses of its recording: inputs are copied into tensors of its own, outputs out of
// them, so that nobody outside holds memory that the next replay overwrites. What lies between a forward and its
// backward (autograd's saved tensors) stays in the pool that their recordings share; weights and gradients are where
// they always are. A recorded `compute` must do nothing that a replay could not: no communication, no number that the
// host looks at, nothing that depends on step or micro-batch but through its inputs.
//
// Not proven on a GPU: recorded as CUDA graphs it has run where nothing is computed (tests/exec/cuda_host_test.cpp). Guarded by
// tests/exec/segment_replay_test.cpp, where a recorder of ATen operations (tests/support/operation_recorder.h) stands in for the device:
// it replays them at fixed addresses, spoils what an earlier replay left, and refuses another order.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "exec/lanes/replay_plan.h"

namespace slipway::exec {

// A device that can keep what a thread starts.
class SegmentCapture {
 public:
  class Recording {
   public:
    virtual ~Recording() = default;
    // Starts it again, on this thread's queue.
    virtual void replay() = 0;
  };
  virtual ~SegmentCapture() = default;
  // The recordings that follow are of another step program; those before are gone or never replayed again.
  virtual void begin_program() {}
  virtual int new_pool() = 0;
  // `work` starts operations on this thread's queue; they are kept and not done, so what they write is there after the
  // first replay. What they allocate comes from `pool` and stays where it is as long as a recording of that pool lives.
  // Those of a pool are replayed in the order in which they were made, then again from the first.
  virtual std::unique_ptr<Recording> record(int pool, const std::function<void()>& work) = 0;
};

class SegmentReplay {
 public:
  using Tensors = std::vector<at::Tensor>;  // undefined ones are left alone
  using Compute = std::function<Tensors(const Tensors& inputs)>;

  static constexpr int eager_steps = 2;

  // `capture` must outlive this.
  SegmentReplay(const TaskGraph& graph, int rank, SegmentCapture& capture);
  // Outputs of `task`, by one of the ways above. `step` counts the steps of this step program. Throws std::runtime_error
  // for inputs of another shape than recorded: all micro-batches of a run are alike.
  Tensors run(TaskId task, int step, const Tensors& inputs, const Compute& compute);

  const ReplayPlan& plan() const { return plan_; }

 private:
  struct Recorded {
    Tensors inputs, outputs;
    std::unique_ptr<SegmentCapture::Recording> recording;  // ends before what it uses
  };
  void take_inputs(std::size_t recording, const Tensors& inputs);

  ReplayPlan plan_;
  SegmentCapture& capture_;
  std::vector<int> pools_;  // of the capture, by number of the plan
  std::vector<Recorded> recorded_;
};

}  // namespace slipway::exec
