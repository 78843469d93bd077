// An interval as JSON for both answers of `slipway growth --fit`: [least, most].
// Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

inline nlohmann::json interval_json(const Interval& interval) { return {interval.least, interval.most}; }

// The scenario lines `training:` for the result of a fit.
// Guarded by tests/scenarios/growth_fit_command_test.cpp: they load with any name of the source.

// `batches`: least and most fitted batch, sequences. `noise_range`: tokens.
std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss,
                           const LossDynamics& dynamics, const std::optional<Interval>& noise_range);

}  // namespace slipway::scenarios
