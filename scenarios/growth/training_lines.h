// The lines `training:` of a scenario for what a fit has found. Guarded by tests/command_growth_fit_test.cpp: they load,
// whatever the source is called.
#pragma once

#include <optional>
#include <string>

#include "models/fit/loss_curves.h"

namespace slipway {

// `batches`: least and most of those that were fitted, sequences; `noise_range`: tokens.
std::string training_lines(const std::string& source, const Interval& batches, double lowest_loss, const LossDynamics& dynamics,
                           const std::optional<Interval>& noise_range);

}  // namespace slipway
