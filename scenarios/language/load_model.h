// From what is known of a model's shape to the model: the reference (built-in, config.json or family) is
// read first, then the scenario's own keys are laid over it, then the family's rules fill what may be
// absent (kv_heads = heads, ...). What may not be absent and is missing is an error.
// Guarded by tests/scenarios/scenario_profiles_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

// The model that the `model` section of a scenario describes; empty after an error. `folder` is where
// relative paths start.
std::optional<Model> load_model(Settings& settings, const std::string& folder);

}  // namespace slipway::scenarios
