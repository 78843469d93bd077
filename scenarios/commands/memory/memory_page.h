// The page of `slipway memory --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/memory/report.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// `step`: simulated with all micro-batches.
Report report_of(const SimulatedStep& step, const MemoryReport& report);

}  // namespace slipway::scenarios
