// The pages of `slipway execute --report` and `slipway confirm --report`. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include "scenarios/commands/execute/confirmation.h"
#include "scenarios/commands/execute/execution.h"
#include "scenarios/report/report.h"

namespace slipway::scenarios {

// `predicted` and `comparison`: with --confirm, of the batch that is compared; otherwise null.
Report report_of(const PreparedStep& prepared, const Execution& run, const Trace* predicted,
                 const Comparison* comparison);

Report report_of(const std::string& baseline_name, const Confirmation& confirmation);

}  // namespace slipway::scenarios
