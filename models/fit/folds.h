// Parts of a table for left-out predictions.
#pragma once

#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

// The part (0 to `folds` − 1) of each key. The distinct keys are sorted by name, shuffled by a fixed seed and dealt out
// in turn, so equal keys are in one part. Guarded by tests/scenarios/validation_test.cpp.
std::vector<int> folds_of(const std::vector<std::string>& keys, int folds);

}  // namespace slipway::models
