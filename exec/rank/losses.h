// The loss curve, live. The loss of a step lives on the ranks that hold the head; each puts its part into
// the store, and rank 0 adds the parts in rank order, writes "step samples loss learning-rate" to its losses
// file, so that the curve outlives a killed rank 0, and prints "step 3/20  loss 5.1234  lr 3.00e-03  0.412 s".
// Where held-out micro-batches pass in the bubbles (exec/rank/evaluation.h), the last step of a window has their loss: "evaluation=4.56".
// Where the batch grows, its size follows, and where the norm test asks what was measured: ‖gradient‖² and its variance.
// A loss or a gradient norm that is no finite number ends the run when its line is written: what follows is not training.
// A thread of its own and a store connection of its own, so that no lane ever waits for it. Guarded by
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
#include "models/training/batch_rules.h"

namespace slipway::exec {

// Ranks that run the end of the last stage, ascending.
std::vector<int> head_ranks(const TaskGraph& graph);

// What a rank knows of a step that it has done.
struct StepResult {
  Progress before;
  std::int64_t batch = 0;
  double loss_part = 0;
  std::int64_t end_ns = 0;                     // of its compute
  std::optional<GradientNorms> norms;          // of the gradient, the same on all ranks
  std::optional<double> gradient_square = {};  // rank 0, where it is clipped
  std::optional<double> evaluation_part = {};  // of the held-out loss, where a window of steps ends
};

class LossReporter {
 public:
  // `bundle` must outlive this. `directory`: where rank 0 writes (losses_path); what an earlier run wrote there of steps
  // before `begin` stays. Throws std::runtime_error naming the file when it cannot.
  // `broke`: a full disk, a training that has diverged. Called in the handler, on the thread of this, at once and not
  // at the end of the next step, which may be minutes away; it need not return. `where`: "step 3, end of the step".
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
