// The man page slipway(1), made from the help of all commands. Guarded by tests/scenarios/shell_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/commands/shell/command_forms.h"

namespace slipway::scenarios {

// In the man macros of groff (man(7)). `version`: "0.1.0".
std::string manual(const std::vector<CommandForm>& forms, std::string_view version);

}  // namespace slipway::scenarios
