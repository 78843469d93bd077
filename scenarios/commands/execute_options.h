// What `slipway execute` can be asked for, and its --help. Guarded by tests/command_line_test.cpp.
#pragma once

#include "scenarios/commands/options.h"

namespace slipway {

CommandOptions execute_options();

}  // namespace slipway
