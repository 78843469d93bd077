// The options of one command, declared once: the same list parses the command line and prints --help.
//
//   CommandOptions options("simulate SCENARIO [options]", "Predicts ...", "slipway simulate s.yaml");
//   options.positional("scenario", 1, 1).value("trace", "FILE", "write the timeline").flag("json", "...");
//   if (!options.parse(args, out)) return status_done;   // --help was asked for and is printed
//
// Mistakes throw UsageError that names the option and the nearest known one. Options are never abbreviated,
// so a new option cannot change what an old command line means.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/answers/answer_keys.h"

namespace slipway::scenarios {

class CommandOptions {
 public:
  CommandOptions(std::string usage, std::string purpose, std::string example);

  // Between `least` and `most` arguments without a dash.
  CommandOptions& positional(std::string name, std::size_t least, std::size_t most);
  CommandOptions& flag(std::string name, std::string meaning);
  CommandOptions& value(std::string name, std::string placeholder, std::string meaning);
  // The option declared last also has a short form: -o.
  CommandOptions& letter(char letter);
  // A value that may be given several times, in order.
  CommandOptions& values(std::string name, std::string placeholder, std::string meaning);
  // --help-json: the meaning of every key that --json prints.
  CommandOptions& json_keys(std::vector<AnswerKeys> answers);
  // Paragraphs printed after the options.
  CommandOptions& notes(std::string text);

  // False when --help, -h or --help-json was given (and is answered on `out`).
  bool parse(const std::vector<std::string>& args, std::ostream& out);

  bool has(const std::string& name) const;
  std::optional<std::string> text(const std::string& name) const;
  const std::vector<std::string>& all(const std::string& name) const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  // A whole number of at least `least`, or `fallback` when the option was not given.
  int integer(const std::string& name, int fallback, int least) const;
  // A number above 0, or `fallback`.
  double number(const std::string& name, double fallback) const;

 private:
  struct Option {
    std::string name, placeholder, meaning;  // placeholder empty: a flag
    bool repeats = false;
    char letter = 0;
  };
  void print_help(std::ostream& out) const;
  [[noreturn]] void fail(const std::string& message) const;
  std::string unknown_option(const std::string& option) const;
  std::string as_override(const std::string& word) const;
  std::string as_key(const std::string& name) const;

  std::string usage_, purpose_, example_, notes_;
  std::string positional_name_;
  std::size_t positional_least_ = 0, positional_most_ = 0;
  std::vector<Option> options_;
  std::vector<AnswerKeys> answers_;
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> arguments_;
};

// A trace that a command was given: what is no complete trace of Slipway is a mistake of the user (exit status
// 2) and not a failure while running. Guarded by tests/scenarios/compare_command_test.cpp and
// tests/scenarios/calibrate_command_test.cpp.

// Throws UsageError naming the file, what is wrong with it and what to give.
Trace trace_from(const std::string& path);

}  // namespace slipway::scenarios
