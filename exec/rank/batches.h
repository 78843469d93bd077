// Which batch the next step has, and so which step program of the bundle runs: models/training/batch_rules.h with what
// was measured. Every rank asks the same questions at the same steps and must get the same answers:
//
//   linear, stages   from the samples seen, so each rank knows by itself
//   norm test        from the gradients' norms, which are the same sums everywhere; rank 0's answer counts all
//                    the same (run_bundle.cpp), for ranks of different opinions would wait for ever
//
// Plain C++. Guarded by tests/exec/batches_test.cpp and tests/exec/execute_growth_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/lanes/lanes.h"
#include "exec/run/progress.h"
#include "models/training/batch_rules.h"
#include "schedules/graph/cut_window.h"

namespace slipway::exec {

// Of a step, from the sums that its tasks made of gradients that are parts of the batch's: Σ‖part‖² and ‖Σ part‖².
GradientNorms norms_of(const TaskGraph& graph, double parts_squared, double sum_squared);

// Of the first step of a run.
std::int64_t first_batch(const Bundle& bundle, const Progress& begin);
// Does the batch after `done` depend on the norms of the step before?
bool is_tested(const Bundle& bundle, const Progress& done);
// Of the step after `done`, whose last step had done.batch. Throws std::runtime_error where norms are needed and are
// none of numbers: a training that has diverged, and is not over.
std::int64_t batch_after(const Bundle& bundle, const Progress& done, const std::optional<GradientNorms>& norms);

// The step programs of a run from `begin` on: those of the bundle and, where the training ends within a window, what runs
// of it (schedules/graph/cut_window.h).
struct StepPrograms {
  StepPrograms(const Bundle& bundle, const Progress& begin);
  StepPrograms(const StepPrograms&) = delete;

  std::optional<TaskGraph> last;
  std::vector<const TaskGraph*> all;  // programs_of, then `last`
};

// The steps from `now` on that have the batch now.batch whatever they measure, as steps of their program, which may be
// windows; at last StepPrograms::last, behind the others; none at the training's end.
StepSpan span_from(const Bundle& bundle, const Progress& now);

}  // namespace slipway::exec
