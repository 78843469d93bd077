// The words of a shell script. Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/trainers/given_arguments.h"

namespace slipway::scenarios {

// The words of a script, command by command. Comments are left out, lines joined at a backslash. Assignments and
// arrays become `variables`, unless they are there already; "${ARGS[@]}" becomes the array's words. Throws UsageError
// where variables multiply to more than 64 MB.
struct ShellCommand {
  std::vector<std::string> words;
  int line = 0;
};
std::vector<ShellCommand> shell_commands(const std::string& text, Variables& variables);

}  // namespace slipway::scenarios
