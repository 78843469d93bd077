// The pages of `slipway validate --report`: predicted against measured, a plot per table. Guarded by
// tests/scenarios/report_test.cpp.
#pragma once

#include <vector>

#include "scenarios/laboratory/validate/pooled.h"
#include "scenarios/laboratory/validate/validation.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

Report report_of(const std::vector<Validation>& validations);
Report report_of(const PooledValidation& validation);

}  // namespace slipway::scenarios
