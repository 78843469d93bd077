// What `slipway calibrate` prints: every parameter with its interval and unit, residuals per kind of work,
// and how well unseen work is predicted. Guarded by tests/scenarios/calibrate_command_test.cpp.
#pragma once

#include <string>

#include "models/fit/calibration.h"

namespace slipway::scenarios {

std::string report_text(const Calibration& calibration);

// Names of the parameters that were not fitted, for the profile's provenance; empty when all were.
std::string unfitted_text(const Calibration& calibration);

}  // namespace slipway::scenarios
