// Reads a folder of weights as Hugging Face's transformers saves it:
//
//   DIR/config.json                       the model's shape and constants
//   DIR/model.safetensors                 or, of several files:
//   DIR/model.safetensors.index.json      {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//
// Guarded by tests/scenarios/weights_command_test.cpp and tests/exec/initial_weights_test.cpp.
#pragma once

#include <string>

#include "exec/run/weight_files.h"
#include "models/model/model.h"

namespace slipway::scenarios {

// Reads the headers in `folder` and finds each parameter of `model`. Throws UsageError that begins with `option`
// ("--weights"): for a model that has no such weights, a config.json of another model, a missing or damaged file, and a
// tensor that is missing, has another shape or dtype, or is none of the model's.
WeightFiles weights_in(const std::string& option, const std::string& folder, const Model& model);

}  // namespace slipway::scenarios
