// The batch of the next step, and so the step program of the bundle that runs: models/training/batch_rules.h with
// measured norms. Every rank computes it at the same steps and must get the same result:
//
//   linear, stages   from the samples seen, so each rank computes it alone
//   norm test        from the gradients' norms, which are the same sums everywhere. Rank 0's result still decides
//                    (run_bundle.cpp), because ranks with different results would wait for ever
//
// Plain C++. Guarded by tests/exec/batches_test.cpp and tests/exec/execute_growth_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/lanes/lanes.h"
#include "exec/run/progress.h"
#include "models/training/norm_test.h"
#include "schedules/graph/cut_window.h"

namespace slipway::exec {

// Norms of a step, from its sums over gradients that are parts of the batch's: Σ‖part‖² and ‖Σ part‖².
GradientNorms norms_of(const TaskGraph& graph, double parts_squared, double sum_squared);

// Batch of the first step of a run.
std::int64_t first_batch(const Bundle& bundle, const Progress& begin);
// True if the batch after `done` depends on the norms of the step before.
bool is_tested(const Bundle& bundle, const Progress& done);
// Batch of the step after `done`, whose last step had done.batch. Throws std::runtime_error for invalid norms where
// norms are needed: the training has diverged before its end.
std::int64_t batch_after(const Bundle& bundle, const Progress& done, const std::optional<GradientNorms>& norms);

// The step programs of a run from `begin` on: those of the bundle and, where the training ends within a window, the
// part of it that runs (schedules/graph/cut_window.h).
struct StepPrograms {
  StepPrograms(const Bundle& bundle, const Progress& begin);
  StepPrograms(const StepPrograms&) = delete;

  std::optional<TaskGraph> last;
  std::vector<const TaskGraph*> all;  // programs_of, then `last`
};

// The steps from `now` on that surely have the batch now.batch, counted in steps of their program, which may be
// windows. At last comes StepPrograms::last, behind the others; none at the training's end.
StepSpan span_from(const Bundle& bundle, const Progress& now);

}  // namespace slipway::exec
