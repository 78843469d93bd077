// Checks of output files before any work. A mistake here is the user's.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Checks `path`, the output of `option` ("--trace"). Throws UsageError for "-", for a folder, for one of `inputs` (by
// any name), and where it cannot be written.
void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& inputs);

// The same for a folder, which may not exist yet.
void check_output_folder(const std::string& option, const std::string& path);

// All files that the scenario was read from.
const std::vector<std::string>& inputs_of(const Scenario& scenario);

}  // namespace slipway::scenarios
