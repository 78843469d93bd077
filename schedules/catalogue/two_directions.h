// Common parts of Chimera and DualPipe: two copies of the model in one pipeline, in opposite directions, each with half
// of the micro-batches and one stage per rank.
// Guarded by tests/schedules/catalogue_test.cpp.
#pragma once

#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {

// Nothing where the schedule `name` can run the shape. `instead`: what to choose for an odd number of pipeline ranks.
std::optional<ShapeRefusal> refuse_two_directions(const std::string& name, const ScheduleShape& shape,
                                                  const std::string& instead);

}  // namespace slipway::schedules
