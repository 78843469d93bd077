// Arguments and options of every command, read from its --help-form. The shells' completion (completion.h) and the man
// page (manual.h) are made from it, so neither can fall behind the help.
#pragma once

#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct OptionForm {
  std::string name, letter, placeholder, meaning;  // letter empty: none; placeholder empty: a flag
};

struct CommandForm {
  std::string name, summary, usage, purpose, example, notes;
  std::vector<std::string> words;  // what an argument may be; empty: files
  std::vector<OptionForm> options;
};

// In the order of `slipway help`.
std::vector<CommandForm> command_forms();

}  // namespace slipway::scenarios
