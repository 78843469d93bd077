// The page of `slipway simulate --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/predict/prediction.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// Also for other commands that predict a step. `step` holds the whole step, not only a few periods.
Report report_of(const SimulatedStep& step, const Prediction& prediction);

// For other reports with a prediction.
Bar shares_bar(const StepMetrics& step);

}  // namespace slipway::scenarios
