// How far a training has come, and the learning rate of its next step (models/training/learning_rate.h), which follows
// from that: samples are counted from the training's beginning, whatever the batch was then. A schedule that
// decays to the end of the training ends with run.steps, which are of one batch then.
// Plain C++. Guarded by tests/exec/execute_numerics_test.cpp and tests/scenarios/resume_command_test.cpp.
#pragma once

#include <cstdint>

#include "schedules/graph/bundle.h"

namespace slipway::exec {

// What a training's checkpoint says, or nothing.
struct Progress {
  std::int64_t steps = 0, samples = 0;
  std::int64_t batch = 0;  // samples of the next step; 0: nothing has said so yet
};

// When a training that has come to `now` has done `steps`.
inline std::int64_t samples_at_end(const Progress& now, std::int64_t steps, std::int64_t batch) {
  return now.samples + (steps - now.steps) * batch;
}

// Of the step of `batch` samples after `before`.
double learning_rate_of(const Bundle& bundle, const Progress& before, std::int64_t batch);

}  // namespace slipway::exec
