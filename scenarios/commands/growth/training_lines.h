// An interval as JSON for both answers of `slipway growth --fit`: [least, most].
// Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

// An interval as --json has it: [least, most].
inline std::vector<double> bounds(const Interval& interval) { return {interval.least, interval.most}; }
inline std::optional<std::vector<double>> bounds(const std::optional<Interval>& interval) {
  return interval ? std::optional(bounds(*interval)) : std::nullopt;
}

// The scenario lines `training:` for the result of a fit.
// Guarded by tests/scenarios/growth_fit_command_test.cpp: they load with any name of the source.

// `batches`: least and most fitted batch, sequences. `noise_range`: tokens.
std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss,
                           const LossDynamics& dynamics, const std::optional<Interval>& noise_range);

}  // namespace slipway::scenarios
