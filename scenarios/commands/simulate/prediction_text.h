// What `slipway simulate` prints. Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/prediction.h"

namespace slipway::scenarios {

std::string report_text(const PreparedStep& prepared, const Prediction& prediction);
// The table of memory_rows.
std::string memory_text(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs = {});
// The first pipeline rank's memory term by term beside the closed form of Fujii et al. 2024. Empty without a closed
// form (a model that is no plain Llama, a schedule that is not 1F1B).
std::string closed_form_text(const PreparedStep& prepared, const StageMemory& first);

}  // namespace slipway::scenarios
