#include <algorithm>
#include <exception>
#include <ostream>
#include <string>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/load_scenario.h"

#ifndef SLIPWAY_VERSION
#error "the build names the version: scenarios/CMakeLists.txt"
#endif

namespace slipway::scenarios {

namespace {

std::vector<Command>& registry() {
  static std::vector<Command> commands;
  return commands;
}

void print_help(std::ostream& out) {
  out << "slipway " SLIPWAY_VERSION
         ": plans, simulates and executes LLM training from one task graph.\n\n"
         "Usage: slipway COMMAND [arguments]\n\nCommands:\n";
  for (const Command& command : all_commands()) {
    out << "  " << command.name << std::string(12 - command.name.size(), ' ') << command.summary << '\n';
  }
  out << "\n`slipway COMMAND --help` explains one command.\n"
         "Exit status: 0 done, 1 failed or interrupted, 2 wrong usage or wrong scenario.\n";
}

std::string unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) names.emplace_back(command.name);
  return "unknown command '" + name + "'" + suggestion(name, names, "slipway ") + " (`slipway help` lists all)";
}

// Ctrl-C ends every command with the exit status that help promises, even commands that do not catch it.
int run_command(const Command& command, const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                std::vector<ScenarioError>* refused) {
  const ExitOnInterrupt otherwise;
  try {
    return command.run(args, out, err);
  } catch (const UsageError& error) {
    const auto* const of_scenario = dynamic_cast<const ScenarioRefused*>(&error);
    if (of_scenario != nullptr && refused != nullptr) *refused = of_scenario->errors();
    err << "slipway " << command.name << ": " << error.what() << '\n';
    return status_usage;
  } catch (const std::exception& error) {
    err << "slipway " << command.name << ": " << error.what() << '\n';
    return status_failed;
  }
}

}  // namespace

RegisterCommand::RegisterCommand(Command command) {
  std::vector<Command>& commands = registry();
  const auto after = std::ranges::upper_bound(commands, command.place, {}, &Command::place);
  commands.insert(after, command);
}

const std::vector<Command>& all_commands() { return registry(); }

const Command* command_named(std::string_view name) {
  const auto found = std::ranges::find(all_commands(), name, &Command::name);
  return found == all_commands().end() ? nullptr : &*found;
}

std::string_view slipway_version() { return SLIPWAY_VERSION; }

int run_slipway(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                std::vector<ScenarioError>* refused) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || (args[0] == "help" && args.size() == 1)) {
    print_help(out);
    return status_done;
  }
  if (args[0] == "--version") {
    out << "slipway " SLIPWAY_VERSION "\n";
    return status_done;
  }
  const bool asks_help = args[0] == "help";
  const std::string& name = asks_help ? args[1] : args[0];
  const Command* command = command_named(name);
  if (command == nullptr) {
    err << "slipway: " << unknown_command(name) << '\n';
    return status_usage;
  }
  if (asks_help) return run_command(*command, {"--help"}, out, err, refused);
  return run_command(*command, {args.begin() + 1, args.end()}, out, err, refused);
}

}  // namespace slipway::scenarios
