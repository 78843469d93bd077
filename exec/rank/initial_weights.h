// The weights that a training starts from, of files whose headers `slipway` has read (exec/run/weight_files.h).
// A rank reads whole parameters and cuts its shards, so the layout does not matter.
// Guarded by tests/exec/initial_weights_test.cpp.
#pragma once

#include "exec/rank/parameter_state.h"
#include "exec/run/weight_files.h"

namespace slipway::exec {

// Throws std::runtime_error with the file that is missing, or is not the one whose header was read.
void check_weight_files(const WeightFiles& weights);

// The parameter whole, as after no update: moments are zero. `weights` are checked. Throws std::runtime_error with the
// file that ends too early, and where a weight is not finite.
ParameterState initial_state(const WeightFiles& weights, const Parameter& parameter);

}  // namespace slipway::exec
