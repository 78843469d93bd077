// The scenario lines `training:` for the result of a fit.
// Guarded by tests/scenarios/growth_fit_command_test.cpp: they load with any name of the source.
#pragma once

#include <optional>
#include <string>

#include "models/fit/loss_curves.h"
#include "models/training/loss_dynamics.h"

namespace slipway::scenarios {

// `batches`: least and most fitted batch, sequences. `noise_range`: tokens.
std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss,
                           const LossDynamics& dynamics, const std::optional<Interval>& noise_range);

}  // namespace slipway::scenarios
