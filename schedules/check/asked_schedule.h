// A schedule that a caller's function makes. The function is asked once for each shape, and its lists are checked before
// anybody sees them.
// Guarded by tests/library/libslipway_test.cpp and tests/python/schedule_test.py.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// `actions` is a pure function, called by one thread at a time. It throws std::invalid_argument to refuse a shape.
// `chunks`: where a scenario does not set layout.chunks.
std::shared_ptr<const Schedule> asked_schedule(std::string name, int chunks,
                                               std::function<ActionLists(const ScheduleShape&)> actions);

}  // namespace slipway::schedules
