// An interval as both answers of `slipway growth --fit` give it to programs: [least, most]. Guarded by
// tests/scenarios/growth_fit_command_test.cpp and command_growth_run_test.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

inline nlohmann::json interval_json(const Interval& interval) { return {interval.least, interval.most}; }

// The lines `training:` of a scenario for what a fit has found. Guarded by tests/scenarios/growth_fit_command_test.cpp: they load,
// whatever the source is called.

// `batches`: least and most of those that were fitted, sequences; `noise_range`: tokens.
std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss,
                           const LossDynamics& dynamics, const std::optional<Interval>& noise_range);

}  // namespace slipway::scenarios
