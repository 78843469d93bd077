// The text of `slipway calibrate`: every parameter with interval and unit, residuals per kind of work, and the
// prediction error of unseen work. Guarded by tests/scenarios/calibrate_command_test.cpp.
#pragma once

#include <string>

#include "models/fit/calibration.h"

namespace slipway::scenarios {

std::string report_text(const Calibration& calibration);

// Names of the parameters without a fit, for the profile's provenance; empty when all were fitted.
std::string unfitted_text(const Calibration& calibration);

}  // namespace slipway::scenarios
