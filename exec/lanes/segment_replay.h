// Runs a segment operator by operator, or replays a recording of it. On a GPU a recording is a CUDA graph, whose start
// costs the host one call instead of hundreds.
//
//   steps 0, 1   compute(inputs)                                   as it is: libraries and caches set themselves up
//   step 2       copy inputs ─► record compute(copies) ─► replay   once per recording (exec/lanes/recordings.h)
//   then         copy inputs ─► replay ─► copy outputs             `compute` is not called again
//
// A replay reads and writes the addresses of its recording. Inputs are copied into its own tensors and outputs out of
// them, so that no outside owner holds memory that the next replay overwrites. What lies between a forward and its
// backward (autograd's saved tensors) stays in the pool of their recordings; weights and gradients stay where they are.
// A recorded `compute` must do nothing that a replay cannot. It must not communicate, read a number on the host, or
// depend on step or micro-batch except through its inputs.
//
// Recorded as CUDA graphs it has run on one GPU (docs/execution.md), and where nothing is computed
// (tests/exec/cuda_host_test.cpp). Guarded by tests/exec/segment_replay_test.cpp with a recorder of ATen operations
// (tests/support/operation_recorder.h) as the device: it replays them at fixed addresses, spoils what an earlier replay
// left, and refuses another order.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "exec/lanes/recordings.h"

namespace slipway::exec {

// A device that can record what a thread starts.
class SegmentCapture {
 public:
  class Recording {
   public:
    virtual ~Recording() = default;
    // Starts the recorded operations again, on this thread's queue.
    virtual void replay() = 0;
  };
  virtual ~SegmentCapture() = default;
  // Later recordings belong to another step program; earlier ones are gone or never replayed again.
  virtual void begin_program() {}
  virtual int new_pool() = 0;
  // `work` starts operations on this thread's queue. They are recorded and not run, so their results exist after the
  // first replay. Their allocations come from `pool` and stay as long as a recording of that pool lives. Recordings of
  // a pool are replayed in the order in which they were made, then again from the first.
  virtual std::unique_ptr<Recording> record(int pool, const std::function<void()>& work) = 0;
};

class SegmentReplay {
 public:
  using Tensors = std::vector<at::Tensor>;  // undefined ones are left alone
  using Compute = std::function<Tensors(const Tensors& inputs)>;

  static constexpr int eager_steps = 2;

  // `capture` must outlive this.
  SegmentReplay(const TaskGraph& graph, int rank, SegmentCapture& capture);
  // Outputs of `task`, by one of the ways above. `step` counts the steps of this step program. Throws
  // std::runtime_error for inputs of another shape than recorded: all micro-batches of a run are alike.
  Tensors run(TaskId task, int step, const Tensors& inputs, const Compute& compute);

  const Recordings& recordings() const { return recordings_; }

 private:
  struct Recorded {
    Tensors inputs, outputs;
    std::unique_ptr<SegmentCapture::Recording> recording;  // destroyed before what it uses
  };
  void take_inputs(std::size_t recording, const Tensors& inputs);

  Recordings recordings_;
  SegmentCapture& capture_;
  std::vector<int> pools_;  // the capture's number of each pool of the recordings
  std::vector<Recorded> recorded_;
};

}  // namespace slipway::exec
