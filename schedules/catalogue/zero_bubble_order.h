// The common order of ZB-H1 and ZB-H2 (Qi et al. 2024): 1F1B with a split backward, entered d times as deep.
//
//   Rank r of p starts with d(p − r) − (d − 1) forwards. A W runs right before the forward that would otherwise make
//   it hold d·p − (d − 1) micro-batches. When no forward is left, d·r W are kept for the end.
//
// d = 1 is ZB-H1, d = 2 is ZB-H2. Their files give the reason and the cost.
// Guarded by tests/schedules/catalogue_test.cpp.
#pragma once

#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// Allows one stage per rank and whole sequences. Returns empty, or why `name` cannot run `shape` and what to change.
std::optional<ShapeRefusal> refuse_zero_bubble(const std::string& name, const ScheduleShape& shape);
ActionLists zero_bubble_order(const ScheduleShape& shape, int depth);

}  // namespace slipway::schedules
