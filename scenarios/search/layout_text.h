// The settings of a searched layout in words, for messages and tables. Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "schedules/step/step.h"

namespace slipway::scenarios {

std::string layout_text(const Step& choice);              // "tensor 8 with sequence parallel, pipeline 4, ..."
std::string schedule_text(const Step& choice);            // "1f1b", "of a CSV"
std::string recompute_text(const Step& choice);           // "selective", "norm+activation"
std::string layers_text(const std::vector<int>& layers);  // "9, 8, 8, 7"

}  // namespace slipway::scenarios
