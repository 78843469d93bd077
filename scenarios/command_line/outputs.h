// What a command is asked to write, checked before any work: a mistake here is one of the user.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// `option` ("--trace") is to write `path`. Throws UsageError for "-", for a folder, where the path is the same file as
// one of `inputs` (by whatever name), and where it cannot be written.
void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& inputs);

// The same for a folder, which need not be there yet.
void check_output_folder(const std::string& option, const std::string& path);

// All files that the scenario was read from.
const std::vector<std::string>& inputs_of(const Scenario& scenario);

}  // namespace slipway::scenarios
