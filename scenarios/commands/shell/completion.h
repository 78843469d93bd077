// Completion scripts of three shells: commands, options, the topics of `list`, the scenario's keys after --set, files.
// Guarded by tests/scenarios/shell_test.cpp, which asks the shells themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/commands/shell/command_forms.h"

namespace slipway::scenarios {

struct Shell {
  std::string_view name;     // argument of `slipway completion`
  std::string_view install;  // a command line that installs the script for the user
  // `keys`: of a scenario, "layout.tensor".
  std::string (*script)(const std::vector<CommandForm>& forms, const std::vector<std::string>& keys);
};

const std::vector<Shell>& shells();

// Keys of a scenario that can be given to --set: those without a name of the user's inside.
std::vector<std::string> settable_keys();

}  // namespace slipway::scenarios
