// The page of `slipway study --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/study/study_report.h"
#include "scenarios/report/report.h"
#include "scenarios/search/study.h"

namespace slipway::scenarios {

// At least one row has results.
Report report_of(const Study& study);

}  // namespace slipway::scenarios
