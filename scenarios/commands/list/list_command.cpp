#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <ostream>
#include <string>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/list/listing.h"
#include "scenarios/laboratory/tables/table.h"
#include "scenarios/language/nearest.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {
namespace {

struct Topic {
  const char* name;
  const char* meaning;
  void (*print)(std::ostream& out) = nullptr;
  void (*print_of)(std::ostream& out, const std::string& name) = nullptr;  // instead: of a trainer
};

// Lines of at most 100 characters, broken at blanks.
std::string wrapped(const std::string& text, const std::string& indent) {
  constexpr std::size_t most = 100;
  std::string out;
  std::size_t begin = 0;
  while (text.size() - begin > most) {
    const std::size_t end = text.rfind(' ', begin + most);
    out += text.substr(begin, end - begin) + "\n" + indent;
    begin = end + 1;
  }
  return out + text.substr(begin);
}

void list_tables(std::ostream& out) {
  out << "A run is a scenario and its results. Columns, of which scenario, status and step_s are required:\n";
  for (const RunColumn& column : run_columns()) out << fmt::format("  {:<22}  {}\n", column.name, column.meaning);
  out << "\nConverters of publishers' tables, python3 CONVERTER IN.csv -o OUT.csv, and the columns that each reads:\n";
  for (const Converter& each : converters())
    out << "  " << each.path << "\n    " << wrapped(fmt::format("{}", fmt::join(each.columns, ", ")), "    ") << "\n";
}

void print_json_keys(std::ostream& out) {
  std::vector<AnswerKeys> answers;
  for (const Command& command : all_commands())
    if (command.answers != nullptr)
      for (AnswerKeys& keys : command.answers()) answers.push_back(std::move(keys));
  out << describe(answers);
}

constexpr std::array<Topic, 14> topics{{
    {"models", "built-in models: model.name", list_models},
    {"machines", "machine profiles: cluster.machine", list_machines},
    {"trainers", "trainers with their facts: cluster.trainer", list_trainers},
    {"constants", "the constants of a step, fitted to published runs of all trainers", list_constants},
    {"schedules", "schedules: schedule.name", list_schedules},
    {"topologies", "topologies of a fabric: cluster.fabrics.*.topology.kind", list_topologies},
    {"keys", "every key of a scenario", [](std::ostream& out) { list_keys(out, scenario_keys()); }},
    {"machine-keys", "every key of a machine profile", [](std::ostream& out) { list_keys(out, machine_keys()); }},
    {"trainer-keys", "the facts that a trainer's file may have", list_trainer_keys},
    {"arguments", "TRAINER: its arguments and what they mean here (import, plan --emit)", nullptr, list_arguments},
    {"recipes", "TRAINER: named lists of its arguments (import --recipe)", nullptr, list_recipes},
    {"tables", "tables of measured runs for validate, with their columns", list_tables},
    {"block-keys", "every key of a block table (cluster.block_times)",
     [](std::ostream& out) { list_keys(out, block_table_keys()); }},
    {"json-keys", "the keys that --json prints", print_json_keys},
}};

std::string topics_text() {
  std::string text = "TOPIC is one of\n";
  for (const Topic& topic : topics) {
    text +=
        "  " + std::string(topic.name) + std::string(14 - std::string(topic.name).size(), ' ') + topic.meaning + "\n";
  }
  text.pop_back();
  return text;
}

int list_command(const std::vector<std::string>& args, std::ostream& out, std::ostream&) {
  CommandOptions options("list TOPIC [TRAINER]", "Lists the names that scenarios and outputs use.",
                         "slipway list models");
  std::vector<std::string> names;
  for (const Topic& topic : topics) names.emplace_back(topic.name);
  options.positional(fmt::format("topic ({})", fmt::join(names, ", ")), 1, 2, names).notes(topics_text());
  if (!options.parse(args, out)) return status_done;
  const std::string& name = options.arguments()[0];
  for (const Topic& topic : topics) {
    if (name != topic.name) continue;
    const bool has_trainer = options.arguments().size() > 1;
    if (has_trainer != (topic.print_of != nullptr))
      throw UsageError(name + (has_trainer ? " takes no name; leave '" + options.arguments()[1] + "' out"
                                           : " takes the name of a trainer (slipway list " + name + " megatron-core)"));
    has_trainer ? topic.print_of(out, options.arguments()[1]) : topic.print(out);
    return status_done;
  }
  throw UsageError("nothing to list under '" + name + "'" + suggestion(name, names, "slipway list ") +
                   " (`slipway list --help` names all)");
}

const RegisterCommand registered({.place = 18,
                                  .name = "list",
                                  .summary = "list models, machines, schedules, scenario keys, JSON keys",
                                  .run = list_command});

}  // namespace

}  // namespace slipway::scenarios
