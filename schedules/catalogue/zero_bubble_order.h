// What ZB-H1 and ZB-H2 share (Qi et al. 2024): 1F1B with a split backward, entered d times as deep.
//
//   rank r of p starts with d(p − r) − (d − 1) forwards; a W runs right before the forward for which
//   d·p − (d − 1) micro-batches would otherwise be held; when no forward is left, d·r of them are kept for the end
//
// d = 1 is ZB-H1, d = 2 is ZB-H2; why, and what it costs, stands in their files.
// Guarded by tests/schedules/catalogue_test.cpp.
#pragma once

#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// One stage per rank, whole sequences. Empty, or why `name` cannot run `shape` and what to change.
std::string refuse_zero_bubble(const std::string& name, const ScheduleShape& shape);
ActionLists zero_bubble_order(const ScheduleShape& shape, int depth);

}  // namespace slipway::schedules
