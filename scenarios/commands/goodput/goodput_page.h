// The page of `slipway goodput --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/goodput/goodput_report.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

Report report_of(const Scenario& scenario, const GoodputAnswer& answer);

}  // namespace slipway::scenarios
