// The progress of a training, and the learning rate of its next step (models/training/learning_rate.h), which follows
// from it. Samples count from the training's beginning, whatever the batch was. A schedule that decays to the end of
// the training ends with run.steps, which then have one batch.
// Plain C++. Guarded by tests/exec/execute_numerics_test.cpp and tests/scenarios/resume_command_test.cpp.
#pragma once

#include <cstdint>

#include "schedules/bundle/bundle.h"

namespace slipway::exec {

// The progress in a training's checkpoint, or none.
struct Progress {
  std::int64_t steps = 0, samples = 0;
  std::int64_t batch = 0;  // samples of the next step; 0: not yet known
};

// Samples of a training at `now` once it has done `steps`.
inline std::int64_t samples_at_end(const Progress& now, std::int64_t steps, std::int64_t batch) {
  return now.samples + (steps - now.steps) * batch;
}

// Learning rate of the step of `batch` samples after `before`.
double learning_rate_of(const Bundle& bundle, const Progress& before, std::int64_t batch);

}  // namespace slipway::exec
