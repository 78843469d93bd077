// The sub-commands of `slipway`, in one table (command.cpp). A new command is a new file
// scenarios/commands/<name>/<name>_command.cpp with one function, its declaration here and one line of the table.
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
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

// Exit status of every command: the work was done; it failed or was interrupted; the request was wrong.
constexpr int status_done = 0, status_failed = 1, status_usage = 2;

struct Command {
  std::string_view name;
  std::string_view summary;  // one line of `slipway help`
  int (*run)(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
  std::vector<AnswerKeys> (*answers)() = nullptr;  // the keys of its --json
};

// In the order of `slipway help`.
const std::vector<Command>& all_commands();

// "0.1.0", of this build.
std::string_view slipway_version();

// The whole program without main: `args` without the program's name. Never throws.
int run_slipway(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

int simulate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int memory_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int plan_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int explain_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int import_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int goodput_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int growth_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int study_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int confirm_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int show_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int lower_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int export_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int execute_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int calibrate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int kernels_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int compare_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int validate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int list_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int demo_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int completion_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int man_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

std::vector<AnswerKeys> simulate_answers();
std::vector<AnswerKeys> memory_answers();
std::vector<AnswerKeys> plan_answers();
std::vector<AnswerKeys> explain_answers();
std::vector<AnswerKeys> import_answers();
std::vector<AnswerKeys> goodput_answers();
std::vector<AnswerKeys> growth_answers();
std::vector<AnswerKeys> study_answers();
std::vector<AnswerKeys> execute_answers();
std::vector<AnswerKeys> compare_answers();
std::vector<AnswerKeys> confirm_answers();
std::vector<AnswerKeys> kernels_answers();
std::vector<AnswerKeys> validate_answers();

}  // namespace slipway::scenarios
