// How far a training has come, and the learning rate of its steps (models/learning_rate.h), which follows
// from that: steps of this run are counted from 0, the samples of the training from its beginning, whatever
// the batch was then. A schedule that decays to the end of the training ends with run.steps.
// Plain C++. Guarded by tests/execute_numerics_test.cpp and tests/command_resume_test.cpp.
#pragma once

#include <cstdint>

#include "schedules/bundle.h"

namespace slipway {

// What a training's checkpoint says, or nothing.
struct Progress {
  std::int64_t steps = 0, samples = 0;
};

// When a run that began at `first` has done the training's `steps`.
inline std::int64_t samples_at_end(const Progress& first, std::int64_t steps, std::int64_t batch) {
  return first.samples + (steps - first.steps) * batch;
}

// Of step `step` of a run that began at `first`.
double learning_rate_of(const Bundle& bundle, const Progress& first, int step);

}  // namespace slipway
