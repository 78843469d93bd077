#include "scenarios/commands/command_line/options.h"

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/quantity.h"

namespace slipway::scenarios {

namespace po = boost::program_options;

namespace {

// Lines after the first begin in column `column`.
std::string indented(std::string text, std::size_t column) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += column + 1)
    text.insert(at + 1, column, ' ');
  return text;
}

}  // namespace

CommandOptions::CommandOptions(std::string usage, std::string purpose, std::string example)
    : usage_(std::move(usage)), purpose_(std::move(purpose)), example_(std::move(example)) {}

CommandOptions& CommandOptions::positional(std::string name, std::size_t least, std::size_t most,
                                           std::vector<std::string> words) {
  positional_name_ = std::move(name);
  words_ = std::move(words);
  positional_least_ = least;
  positional_most_ = most;
  return *this;
}

CommandOptions& CommandOptions::formerly(std::string name) {
  options_.back().former = std::move(name);
  return *this;
}

CommandOptions& CommandOptions::flag(std::string name, std::string meaning) {
  options_.push_back({std::move(name), "", std::move(meaning), false});
  return *this;
}

CommandOptions& CommandOptions::value(std::string name, std::string placeholder, std::string meaning) {
  options_.push_back({std::move(name), std::move(placeholder), std::move(meaning), false});
  return *this;
}

CommandOptions& CommandOptions::letter(char letter) {
  options_.back().letter = letter;
  return *this;
}

CommandOptions& CommandOptions::values(std::string name, std::string placeholder, std::string meaning) {
  options_.push_back({std::move(name), std::move(placeholder), std::move(meaning), true});
  return *this;
}

CommandOptions& CommandOptions::json_keys(std::vector<AnswerKeys> (*answers)()) {
  answers_ = answers;
  return flag("help-json", "print the meaning and unit of every JSON key");
}

CommandOptions& CommandOptions::notes(std::string text) {
  notes_ = std::move(text);
  return *this;
}

void CommandOptions::print_help(std::ostream& out) const {
  out << "Usage: slipway " << usage_ << "\n\n" << purpose_ << "\n\nOptions:\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : options_) {
    rows.emplace_back((option.letter ? std::string("-") + option.letter + ", --" : "--") + option.name +
                          (option.placeholder.empty() ? "" : " " + option.placeholder),
                      option.meaning);
  }
  rows.emplace_back("-h, --help", "print this");
  std::size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, left.size());
  for (const auto& [left, right] : rows) {
    out << "  " << left << std::string(width + 2 - left.size(), ' ') << indented(right, width + 4) << '\n';
  }
  if (!notes_.empty()) out << '\n' << notes_ << '\n';
  out << "\nExample:\n  " << example_ << '\n';
}

void CommandOptions::print_form(std::ostream& out) const {
  nlohmann::ordered_json form = {{"usage", usage_}, {"purpose", purpose_}, {"example", example_},
                                 {"notes", notes_}, {"words", words_},     {"options", nlohmann::json::array()}};
  const auto add = [&](const Option& option) {
    const std::string letter = option.letter ? std::string(1, option.letter) : "";
    form["options"].push_back(
        {{"name", option.name}, {"letter", letter}, {"placeholder", option.placeholder}, {"meaning", option.meaning}});
  };
  for (const Option& option : options_) add(option);
  add({"help", "", "print this", false, 'h'});
  out << form.dump() << '\n';
}

void CommandOptions::fail(const std::string& message) const {
  const std::string command = usage_.substr(0, usage_.find(' '));
  throw UsageError(message + "\nusage: slipway " + usage_ + "\n(`slipway " + command + " --help` explains)");
}

std::string CommandOptions::unknown_option(const std::string& option) const {
  std::vector<std::string> names{"--help"};  // --help wins among equally near names
  for (const Option& known : options_) names.push_back("--" + known.name);
  const std::string word = option.substr(std::min(option.size(), option.find_first_not_of('-')));
  for (const Option& known : options_)
    if (!known.former.empty() && word == known.former)
      return "option '" + option + "' is now called '--" + known.name + "'";
  std::string meant = as_override(word);
  if (meant.empty()) meant = suggestion(option, names);
  return "unknown option '" + option + "'" + (meant.empty() ? as_key(word) : meant);
}

// "run.steps" for "steps", which is an option of other commands and a scenario key here; empty without such a key.
std::string CommandOptions::as_key(const std::string& name) const {
  std::string leaf = name.substr(0, name.find('=')), meant;
  std::replace(leaf.begin(), leaf.end(), '-', '_');
  for (const Key& key : scenario_keys()) {
    const bool is_number = key.type == KeyType::integer || key.type == KeyType::number;
    if (!is_number || leaf_of(key.path) != leaf || key.path.find('*') != std::string_view::npos) continue;
    if (!meant.empty()) return "";
    meant = key.path;
  }
  return meant.empty() ? "" : as_override(meant);
}

// "layout.tensor=4" if `word` is a key with its value, which needs --set; otherwise empty.
std::string CommandOptions::as_override(const std::string& word) const {
  const bool has_set = std::any_of(options_.begin(), options_.end(), [](const Option& o) { return o.name == "set"; });
  const std::string key = word.substr(0, word.find('='));
  if (!has_set || key_of(scenario_keys(), key) == nullptr) return "";
  const std::string value = key == word ? "VALUE" : word.substr(key.size() + 1);
  return "; did you mean '--set " + key + "=" + value + "'?";
}

bool CommandOptions::parse(const std::vector<std::string>& args, std::ostream& out) {
  po::options_description known;
  for (const Option& option : options_) {
    const std::string name = option.letter ? option.name + "," + option.letter : option.name;
    if (option.placeholder.empty()) {
      known.add_options()(name.c_str(), "");
    } else {
      known.add_options()(name.c_str(), po::value<std::vector<std::string>>(), "");
    }
  }
  known.add_options()("help,h", "")("help-form", "");
  po::parsed_options parsed(&known);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    parsed = po::command_line_parser(args).options(known).style(style).allow_unregistered().run();
  } catch (const po::error& error) {
    fail(error.what());
  }
  for (const auto& option : parsed.options) {
    if (option.unregistered) fail(unknown_option(option.original_tokens.front()));
    if (option.position_key >= 0) {
      arguments_.push_back(option.value[0]);
      continue;
    }
    auto& values = given_[option.string_key];
    const auto declared =
        std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == option.string_key; });
    if (!values.empty() && declared != options_.end() && !declared->repeats && !declared->placeholder.empty()) {
      fail("option '--" + option.string_key + "' is given twice");
    }
    values.insert(values.end(), option.value.begin(), option.value.end());
  }
  if (has("help")) {
    print_help(out);
    return false;
  }
  if (has("help-form")) {
    print_form(out);
    return false;
  }
  if (has("help-json") && answers_ != nullptr) {
    const std::vector<AnswerKeys> answers = answers_();
    out << (answers.size() == 1 ? describe(answers.front().keys) : describe(answers));
    return false;
  }
  if (arguments_.size() < positional_least_) fail("the " + positional_name_ + " is missing");
  if (arguments_.size() > positional_most_) {
    const std::string& word = arguments_[positional_most_];
    fail("unexpected argument '" + word + "'" + as_override(word));
  }
  return true;
}

bool CommandOptions::has(const std::string& name) const { return given_.contains(name); }

std::optional<std::string> CommandOptions::text(const std::string& name) const {
  const auto& values = all(name);
  return values.empty() ? std::nullopt : std::optional(values.back());
}

const std::vector<std::string>& CommandOptions::all(const std::string& name) const {
  static const std::vector<std::string> nothing;
  const auto found = given_.find(name);
  return found == given_.end() ? nothing : found->second;
}

int CommandOptions::integer(const std::string& name, int fallback, int least) const {
  const auto given = text(name);
  if (!given) return fallback;
  int number = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), number);
  if (error != std::errc() || end != given->data() + given->size() || number < least) {
    fail("option '--" + name + "': '" + *given + "' is no whole number from " + std::to_string(least) + " to " +
         std::to_string(std::numeric_limits<int>::max()));
  }
  return number;
}

double CommandOptions::number(const std::string& name, double fallback) const {
  const auto given = text(name);
  if (!given) return fallback;
  const std::optional<double> number = quantity(*given, Unit::pure);
  if (!number || *number <= 0) fail("option '--" + name + "': '" + *given + "' is no number above 0");
  return *number;
}

}  // namespace slipway::scenarios
