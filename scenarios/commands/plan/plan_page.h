// The page of `slipway plan --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/plan/answer.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// `winner`: the first row, simulated as a whole; null where nothing fits.
Report report_of(const PlanAnswer& answer, const SimulatedStep* winner);

}  // namespace slipway::scenarios
