// The page of `slipway plan --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/plan/answer.h"
#include "scenarios/report/report.h"
#include "scenarios/step/simulated_step.h"

namespace slipway::scenarios {

// `winner`: the first row, simulated as a whole; null where nothing fits.
Report report_of(const PlanAnswer& answer, const SimulatedStep* winner);

}  // namespace slipway::scenarios
