// I6: what a rank runs is a whole step. Guarded by tests/schedules/check_test.cpp.
#pragma once

#include <vector>

#include "schedules/check/check.h"
#include "schedules/check/findings.h"

namespace slipway::schedules {

// Third part of I6, for sequence parallelism: weight gradients have their inputs.
void find_gather_defects(const TaskGraph& graph, Findings& findings);

}  // namespace slipway::schedules
