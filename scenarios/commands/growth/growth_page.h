// The pages of `slipway growth --report`, for a scenario and for an executed run (--fit RUN) or curves (--fit FILE).
// Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/growth/comparison.h"
#include "scenarios/commands/growth/fit_report.h"
#include "scenarios/commands/growth/run_fit_report.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

Report report_of(const Scenario& scenario, const GrowthAnswer& answer);
Report report_of(const FitAnswer& answer);
Report report_of(const RunFitAnswer& answer);

}  // namespace slipway::scenarios
