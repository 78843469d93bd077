// --vary of `slipway study`:
//
//   --vary schedule.name=gpipe,1f1b --vary layout.pipeline=4,8       2 × 2 points, the last varies fastest
//   --vary "layout.pipeline=4,8 model.layers=4,8"                    keys that move together: 2 points
//
// Guarded by tests/scenarios/study_command_test.cpp.
#pragma once

#include <string>

#include "scenarios/search/study.h"

namespace slipway::scenarios {

// Throws UsageError: no such key, a missing value, keys of different lengths.
VariedKeys variation_from(const std::string& option);

}  // namespace slipway::scenarios
