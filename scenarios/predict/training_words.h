// Phrases about a whole training, shared by several commands. Guarded by tests/scenarios/growth_command_test.cpp.
#pragma once

#include <fmt/format.h>

#include <string>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

// "1 token", "43.0 M tokens"
inline std::string tokens_text(double tokens) { return readable_count(tokens) + (tokens == 1 ? " token" : " tokens"); }

// "1.50 G tokens". Commands that keep the batch despite training.growth print
// "1.50 G tokens with batch 2,048 throughout".
inline std::string whole_training_text(const Scenario& scenario) {
  return tokens_text(scenario.tokens) +
         (scenario.growth.given
              ? " with batch " + readable_count(static_cast<double>(scenario.step.global_batch)) + " throughout"
              : "");
}

// The noise scale as a power of the loss: "~ loss^-4.76", "constant".
inline std::string power_text(double noise_exponent) {
  return noise_exponent == 0 ? "constant" : fmt::format("~ loss^-{:.3g}", noise_exponent);
}

}  // namespace slipway::scenarios
