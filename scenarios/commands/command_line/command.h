// The sub-commands of `slipway`. A new command is a new file scenarios/commands/<name>/<name>_command.cpp, which registers
// itself.
//
//   main ──► run_slipway(arguments) ──► Command::run(arguments after the name, out, err) ──► exit status
//
// A command answers on `out`. Progress and errors go to `err`. It checks all of its input before it writes or starts
// anything. It throws UsageError for a mistake of the user (wrong option, wrong scenario).
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

// Exit status of every command: the work was done; it failed or was interrupted; the request was wrong.
constexpr int status_done = 0, status_failed = 1, status_usage = 2;

struct Command {
  int place = 0;  // in `slipway help`, ascending
  std::string_view name;
  std::string_view summary;  // one line of `slipway help`
  int (*run)(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
  std::vector<AnswerKeys> (*answers)() = nullptr;  // the keys of its --json
};

// In the order of `slipway help`.
const std::vector<Command>& all_commands();
// nullptr: there is none of this name.
const Command* command_named(std::string_view name);

// "0.1.0", of this build.
std::string_view slipway_version();

// The whole program without main: `args` without the program's name. Never throws. `refused` gets the mistakes of a scenario
// one by one, which are also on `err`.
int run_slipway(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                std::vector<ScenarioError>* refused = nullptr);

// Put one static object of this type in each command's file.
struct RegisterCommand {
  explicit RegisterCommand(Command command);
};

}  // namespace slipway::scenarios
