// `slipway completion SHELL`: the script that completes command lines of slipway.
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/shell/completion.h"
#include "scenarios/language/nearest.h"

namespace slipway::scenarios {
namespace {

int completion_command(const std::vector<std::string>& args, std::ostream& out, std::ostream&) {
  CommandOptions options("completion SHELL",
                         "Prints a script with which the shell completes commands, options, scenario keys and files.",
                         "slipway completion bash");
  std::vector<std::string> names;
  std::string install = "To install it for yourself, once:";
  for (const Shell& shell : shells()) {
    names.emplace_back(shell.name);
    install += "\n  " + std::string(shell.install);
  }
  options.positional("shell (bash, zsh, fish)", 1, 1, names).notes(install);
  if (!options.parse(args, out)) return status_done;
  const std::string& name = options.arguments()[0];
  for (const Shell& shell : shells()) {
    if (name != shell.name) continue;
    out << shell.script(command_forms(), settable_keys());
    return status_done;
  }
  throw UsageError("no completion for '" + name + "'" + suggestion(name, names, "slipway completion ") +
                   " (bash, zsh and fish have one)");
}

const RegisterCommand registered({.place = 20,
                                  .name = "completion",
                                  .summary = "print the completion script of a shell",
                                  .run = completion_command});

}  // namespace

}  // namespace slipway::scenarios
