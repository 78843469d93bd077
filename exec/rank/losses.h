// The loss curve, live. The ranks that hold the head each put their part of a step's loss into the store. Rank 0 adds
// the parts in rank order and writes "step samples loss learning-rate" to its losses file. So the curve outlives a
// killed rank 0. It prints "step 3/20  loss 5.1234  lr 3.00e-03  0.412 s". With evaluation in bubbles
// (exec/rank/evaluation.h), a window's last step adds "evaluation=4.56". With a growing batch, its size follows, and
// for the norm test ‖gradient‖² and its variance. A loss or gradient norm that is not finite ends the run when its line
// is written. It has its own thread and store connection, so no lane waits for it. Guarded by
// tests/exec/execute_run_test.cpp, tests/exec/execute_failure_test.cpp and tests/exec/execute_diverged_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/process/store.h"
#include "exec/run/progress.h"
#include "models/training/norm_test.h"

namespace slipway::exec {

// Ranks that run the end of the last stage, ascending.
std::vector<int> head_ranks(const TaskGraph& graph);

// A rank's results of a step that it has done.
struct StepResult {
  Progress before;
  std::int64_t batch = 0;
  double loss_part = 0;
  std::int64_t end_ns = 0;                     // of its compute
  std::optional<GradientNorms> norms;          // of the gradient, equal on all ranks
  std::optional<double> gradient_square = {};  // rank 0, where it is clipped
  std::optional<double> evaluation_part = {};  // of the held-out loss, at the end of a window of steps
};

class LossReporter {
 public:
  // `bundle` must outlive this. Rank 0 writes to losses_path(directory), where an earlier run's lines of steps before
  // `begin` stay. Throws std::runtime_error with the file that cannot be written. `broke` is called for a full disk or
  // a diverged training. It runs in the handler, on this object's thread, at once and not at the end of the next step,
  // which may be minutes away. It need not return. `where`: "step 3, end of the step".
  LossReporter(const Bundle& bundle, int rank, const Progress& begin, const std::string& directory,
               std::unique_ptr<Store> store, std::function<void(const std::string& where)> broke);
  ~LossReporter();

  // Rank 0's start of its first step, for the first printed duration.
  void begin(std::int64_t start_ns);
  // Called in step order; never blocks.
  void step_ended(const StepResult& result);
  // Waits until all parts are in the store and, on rank 0, written and printed.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
