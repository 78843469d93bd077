// Values that a launch derives from a step: lengths in steps, layers of each stage, and the Llamas that stretch their
// rotary angles.
// Guarded by tests/scenarios/launch_arguments_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Steps for run.tokens, rounded up.
std::int64_t planned_steps(const Scenario& scenario);
// The same; without run.tokens run.steps.
std::int64_t torchtitan_steps(const Scenario& scenario);
std::vector<int> layers_per_stage(const Scenario& scenario);
// Llama 3.1 and 3.2 stretch long wavelengths (rope_type llama3 in their config.json).
bool scales_rotary_angles(std::string_view model);

}  // namespace slipway::scenarios
