// `slipway man`: the man page of the program, as roff.
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/shell/manual.h"

namespace slipway::scenarios {
namespace {

int man_command(const std::vector<std::string>& args, std::ostream& out, std::ostream&) {
  CommandOptions options("man", "Prints the man page slipway(1), made from the help of all commands.",
                         "slipway man | man --local-file -");
  options.positional("", 0, 0).notes(
      "To install it for yourself, once:\n  slipway man > ~/.local/share/man/man1/slipway.1");
  if (!options.parse(args, out)) return status_done;
  out << manual(command_forms(), slipway_version());
  return status_done;
}

const RegisterCommand registered({.place = 21, .name = "man", .summary = "print the man page", .run = man_command});

}  // namespace

}  // namespace slipway::scenarios
