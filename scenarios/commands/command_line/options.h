// The options of one command, declared once. The same list parses the command line and prints --help.
//
//   CommandOptions options("simulate SCENARIO [options]", "Predicts ...", "slipway simulate s.yaml");
//   options.positional("scenario", 1, 1).value("trace", "FILE", "write the timeline").flag("json", "...");
//   if (!options.parse(args, out)) return status_done;   // --help was given and is printed
//
// Mistakes throw UsageError with the option and the nearest known one. Options cannot be abbreviated, so a new option
// never changes the meaning of an old command line.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

class CommandOptions {
 public:
  CommandOptions(std::string usage, std::string purpose, std::string example);

  // Accepts `least` to `most` arguments without a dash. `words`: the known ones; empty: files.
  CommandOptions& positional(std::string name, std::size_t least, std::size_t most,
                             std::vector<std::string> words = {});
  CommandOptions& flag(std::string name, std::string meaning);
  CommandOptions& value(std::string name, std::string placeholder, std::string meaning);
  // Adds a short form to the option declared last: -o.
  CommandOptions& letter(char letter);
  // The name that the option declared last had before; the error for it names the new one.
  CommandOptions& formerly(std::string name);
  // An option that may be given several times; the values keep their order.
  CommandOptions& values(std::string name, std::string placeholder, std::string meaning);
  // --help-json: the meaning of every key that --json prints.
  CommandOptions& json_keys(std::vector<AnswerKeys> (*answers)());
  // Paragraphs printed after the options.
  CommandOptions& notes(std::string text);

  // Returns false for --help, -h, --help-json and --help-form, whose text is then on `out`. --help-form is the help as
  // JSON, from which shell completion and the manual are made; it is no part of --help.
  bool parse(const std::vector<std::string>& args, std::ostream& out);

  bool has(const std::string& name) const;
  std::optional<std::string> text(const std::string& name) const;
  const std::vector<std::string>& all(const std::string& name) const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  // A whole number of at least `least`; `fallback` without the option. Throws UsageError for anything else.
  int integer(const std::string& name, int fallback, int least) const;
  // A number above 0; `fallback` without the option. Throws UsageError for anything else.
  double number(const std::string& name, double fallback) const;

 private:
  struct Option {
    std::string name, placeholder, meaning;  // placeholder empty: a flag
    bool repeats = false;
    char letter = 0;
    std::string former = {};
  };
  void print_help(std::ostream& out) const;
  void print_form(std::ostream& out) const;
  [[noreturn]] void fail(const std::string& message) const;
  std::string unknown_option(const std::string& option) const;
  std::string as_override(const std::string& word) const;
  std::string as_key(const std::string& name) const;

  std::string usage_, purpose_, example_, notes_;
  std::string positional_name_;
  std::vector<std::string> words_;
  std::size_t positional_least_ = 0, positional_most_ = 0;
  std::vector<Option> options_;
  std::vector<AnswerKeys> (*answers_)() = nullptr;
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> arguments_;
};

}  // namespace slipway::scenarios
