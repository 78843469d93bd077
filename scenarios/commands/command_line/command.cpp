#include <exception>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/language/nearest.h"

#ifndef SLIPWAY_VERSION
#error "the build names the version: scenarios/CMakeLists.txt"
#endif

namespace slipway::scenarios {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> table = {
      {"simulate", "predict step time, MFU, memory and cost of a scenario", simulate_command, simulate_answers},
      {"memory", "print a layout's memory by part, and changes that make it fit", memory_command, memory_answers},
      {"plan", "search the best layout of a model on a cluster", plan_command, plan_answers},
      {"explain", "say where a step's time goes and what would make it faster", explain_command, explain_answers},
      {"import", "turn a trainer's arguments into a scenario", import_command, import_answers},
      {"goodput", "compute the share of training that survives failing nodes", goodput_command, goodput_answers},
      {"growth", "compute the time that a growing batch saves", growth_command, growth_answers},
      {"study", "simulate every combination of varied keys; table, CSV and plot", study_command, study_answers},
      {"execute", "train a scenario on this machine and trace it", execute_command, execute_answers},
      {"compare", "join a predicted and a measured trace, task by task", compare_command, compare_answers},
      {"kernels", "fit the constants of a GPU's kernels to measured times", kernels_command, kernels_answers},
      {"calibrate", "fit the machine profile to measurements and write it", calibrate_command},
      {"confirm", "predict unseen cases, execute them, print the errors", confirm_command, confirm_answers},
      {"validate", "score predictions against published runs", validate_command, validate_answers},
      {"show", "print the schedule as a rank x step grid; write DOT or CSV", show_command},
      {"lower", "write the bundle that the ranks run", lower_command},
      {"export", "write the task graph for other simulators (Chakra)", export_command},
      {"list", "list models, machines, schedules, scenario keys, JSON keys", list_command},
      {"demo", "open the pages that `make demo` made", demo_command},
      {"completion", "print the completion script of a shell", completion_command},
      {"man", "print the man page", man_command},
  };
  return table;
}

std::string_view slipway_version() { return SLIPWAY_VERSION; }

namespace {

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

const Command* command_named(std::string_view name) {
  for (const Command& command : all_commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) names.emplace_back(command.name);
  return "unknown command '" + name + "'" + suggestion(name, names, "slipway ") + " (`slipway help` lists all)";
}

// Ctrl-C ends every command with the exit status that help promises, even commands that do not catch it.
int run_command(const Command& command, const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const ExitOnInterrupt otherwise;
  try {
    return command.run(args, out, err);
  } catch (const UsageError& error) {
    err << "slipway " << command.name << ": " << error.what() << '\n';
    return status_usage;
  } catch (const std::exception& error) {
    err << "slipway " << command.name << ": " << error.what() << '\n';
    return status_failed;
  }
}

}  // namespace

int run_slipway(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
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
  if (asks_help) return run_command(*command, {"--help"}, out, err);
  return run_command(*command, {args.begin() + 1, args.end()}, out, err);
}

}  // namespace slipway::scenarios
