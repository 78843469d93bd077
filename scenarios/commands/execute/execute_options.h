// The options of `slipway execute`, and its --help. Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include "scenarios/commands/command_line/options.h"

namespace slipway::scenarios {

CommandOptions execute_options();

}  // namespace slipway::scenarios
