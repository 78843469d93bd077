#include "scenarios/commands/plan/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>

#include "exec/run/executable.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/plan/table.h"
#include "scenarios/files/output_file.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/document.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/profiles.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/search/layout_text.h"

namespace slipway::scenarios {

namespace {

void anchor(Value& value, const std::string& path, const std::string& from, const std::string& to) {
  for (std::size_t i = 0; i < value.items.size(); ++i) anchor(value.items[i], path + ".*", from, to);
  for (Entry& entry : value.entries) anchor(entry.value, path.empty() ? entry.key : path + "." + entry.key, from, to);
  if (value.kind != Value::Kind::scalar || value.text.empty()) return;
  const auto keys = scenario_keys();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.path == path; });
  if (key == keys.end() || !key->names_file || std::filesystem::path(value.text).is_absolute()) return;
  if (key->built_in && !looks_like_path(value.text)) return;
  std::error_code ignored;
  const auto target = std::filesystem::absolute(resolve_path(from, value.text), ignored).lexically_normal();
  std::string relative = target.lexically_relative(std::filesystem::absolute(to, ignored).lexically_normal()).string();
  if (!relative.starts_with(".")) relative = "./" + relative;  // without it, it would look like a built-in name
  value.text = relative;
}

void write_winner(const PlanAnswer& answer) {
  if (!answer.file || answer.result.best.empty()) return;
  const PricedLayout& best = answer.result.best.front();
  OutputFile file(*answer.file);
  file.stream() << "# Found by `slipway plan` for " << answer.scenario.name << ": "
                << readable_seconds(best.step_time_s) << " a step, MFU " << readable_share(best.mfu) << ", "
                << readable_bytes(best.memory_bytes) << (answer.result.complete ? "" : "; the search was interrupted")
                << ".\n"
                << winner_yaml(answer.scenario, answer.overrides, best.choice, *answer.file);
  file.commit();
}

int status_of(const PlanAnswer& answer, std::ostream& err) {
  if (!answer.result.complete) {
    err << "slipway plan: interrupted; the answer is the best so far\n";
    return status_failed;
  }
  if (!answer.result.best.empty()) return status_done;
  err << "slipway plan: no layout fits into " << readable_share(answer.options.memory_share) << " of the GPUs' memory.";
  if (const auto& closest = answer.result.closest)
    err << " The closest needs " << readable_bytes(closest->memory_bytes) << " ("
        << readable_share(closest->memory_share) << "): " << layout_text(closest->choice);
  err << "\nIt fits with\n";
  for (const std::string& remedy : answer.remedies) err << "  " << remedy << "\n";
  return status_failed;
}

// The launch arguments of the first row that the trainer can run as planned; if there is none, the winner's.
struct Launch {
  LaunchArguments arguments;
  std::size_t row = 0;
  std::vector<std::string> winner_refused;  // why the winner's were not taken
};

std::optional<Launch> launch_of(const PlanAnswer& answer) {
  const std::vector<PricedLayout>& rows = answer.result.best;
  if (!answer.trainer || rows.empty()) return std::nullopt;
  const auto of_row = [&](std::size_t row) {
    return launch_arguments(with_layout(answer.scenario, rows[row].choice), *answer.trainer);
  };
  const Launch winner{of_row(0), 0, {}};
  for (std::size_t row = 1; row < rows.size() && !winner.arguments.refused.empty(); ++row)
    if (LaunchArguments other = of_row(row); other.refused.empty())
      return Launch{std::move(other), row, winner.arguments.refused};
  return winner;
}

void print_launch(const PlanAnswer& answer, const Launch& launch, std::ostream& out) {
  const std::vector<PricedLayout>& rows = answer.result.best;
  out << "\n";
  for (const std::string& reason : launch.winner_refused)
    out << "The trainer may refuse the winner: " << reason << ".\n";
  if (launch.row > 0)
    out << "Row " << launch.row + 1 << " is the fastest row that it runs, "
        << readable_share(rows[launch.row].step_time_s / rows[0].step_time_s - 1) << " slower; its arguments:\n";
  for (const std::string& reason : launch.arguments.refused)
    out << "The trainer may refuse the winner, and runs no row of the table (more rows: --top): " << reason << ".\n";
  for (const std::string& reason : launch.arguments.refused_anyway)
    out << "The trainer refuses these arguments with any layout: " << reason << ".\n";
  out << "For " << launch.arguments.version << ":\n";
  for (const std::string& variable : launch.arguments.environment) out << variable << " ";
  out << launch.arguments.program;
  for (const std::string& argument : launch.arguments.arguments) out << " \\\n  " << argument;
  out << "\n";
  for (const std::string& missing : launch.arguments.missing) out << "not expressed: " << missing << "\n";
  for (const std::string& own : launch.arguments.to_add) out << "to be added: " << own << "\n";
}

struct Answer {
  const PlanAnswer& plan;
  std::optional<Basis> basis;  // of the winner
  std::optional<Launch> launch;
};
const SearchResult& result_in(const Answer& answer) { return answer.plan.result; }

std::vector<PlanRow> best_in(const Answer& answer) {
  const std::vector<PricedLayout>& best = answer.plan.result.best;
  std::vector<PlanRow> rows;
  for (std::size_t i = 0; i < best.size(); ++i)
    rows.push_back({answer.plan.scenario, best[i], i + 1 < best.size() ? &best[i + 1] : nullptr});
  return rows;
}

std::vector<PlanRow> pareto_in(const Answer& answer) {
  std::vector<PlanRow> rows;
  for (const PricedLayout& priced : answer.plan.result.pareto) rows.push_back({answer.plan.scenario, priced});
  return rows;
}

auto row_in(std::optional<PricedLayout> SearchResult::*which) {
  return [which](const Answer& answer) {
    const std::optional<PricedLayout>& priced = answer.plan.result.*which;
    return priced ? std::optional<PlanRow>({answer.plan.scenario, *priced}) : std::nullopt;
  };
}

std::vector<std::string> command_line(const Launch& launch) {
  std::vector<std::string> line{launch.arguments.program};
  line.insert(line.end(), launch.arguments.arguments.begin(), launch.arguments.arguments.end());
  return line;
}

std::vector<std::string> refusals(const Launch& launch) {
  std::vector<std::string> reasons = launch.row > 0 ? launch.winner_refused : launch.arguments.refused;
  reasons.insert(reasons.end(), launch.arguments.refused_anyway.begin(), launch.arguments.refused_anyway.end());
  return reasons;
}

Description<Launch> launch_keys() {
  return Description<Launch>()
      .key("launch_arguments", "list", "the trainer's program and arguments; this and the rest are present with --emit",
           command_line)
      .key("launch_version", "text", "the trainer's version that has these names",
           of(&Launch::arguments, &LaunchArguments::version))
      .key("launch_environment", "list", "variables of the launch, as NAME=VALUE",
           of(&Launch::arguments, &LaunchArguments::environment))
      .key("launch_row", "count",
           "of best, from 1: the row that they launch, the first that the trainer runs as planned",
           [](const Launch& launch) { return launch.row + 1; })
      .key("may_be_refused", "list", "why the trainer may refuse the winner, or run another layout; why it refuses any",
           refusals)
      .key("not_expressed", "list", "what else of that row the trainer cannot express",
           of(&Launch::arguments, &LaunchArguments::missing))
      .key("to_be_added", "list", "arguments that a scenario does not say, or that are slipway's defaults",
           of(&Launch::arguments, &LaunchArguments::to_add));
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.plan.scenario.name; })
          .key("trainer", "text", "trainer as whose steps work was priced; null: by the machine profiles alone",
               [](const Answer& a) { return a.plan.scenario.trainer.name; })
          .when([](const Answer& a) { return is_priced_by_trainer(a.plan.scenario.cluster); })
          .else_null()
          .key("complete", "bool", "false: interrupted, the answer is the best so far",
               of(result_in, &SearchResult::complete))
          .key("legal", "count", "layouts of the space that can be run", of(result_in, &SearchResult::legal))
          .key("too_large", "count",
               "of these: left out because they do not stay below memory_share with 99 % probability",
               of(result_in, &SearchResult::too_large))
          .key("simulated", "count", "of these: simulated, because their bound left a chance",
               of(result_in, &SearchResult::simulated))
          .key("schedule_csv", "bool", "true: every row runs the action lists of schedule.csv; present with that key",
               [](const Answer&) { return true; })
          .when([](const Answer& a) { return a.plan.scenario.step.actions != nullptr; })
          .key("memory_share", "0..1", "of a GPU's memory that a layout may need with 99 % probability",
               [](const Answer& a) { return a.plan.options.memory_share; })
          .list("best", "rows of the table, fastest first", best_in, plan_row_keys())
          .list("pareto", "rows as in best, each with less memory than every faster one", pareto_in, plan_row_keys())
          .listed_elsewhere()
          .object("best_too_large",
                  "the fastest row, by its bound, that needs too much memory; present when too_large > 0",
                  row_in(&SearchResult::best_too_large), plan_row_keys())
          .listed_elsewhere()
          .object("closest", "the row that needs the least memory; present when nothing fits",
                  row_in(&SearchResult::closest), plan_row_keys())
          .listed_elsewhere()
          .key("remedies", "list",
               "changes of the scenario with which a layout fits, and which; present when nothing fits",
               [](const Answer& a) { return a.plan.remedies; })
          .when([](const Answer& a) { return a.plan.result.closest.has_value(); })
          .key("screening_s", "s", "wall time of the closed form of all layouts",
               of(result_in, &SearchResult::screening_s))
          .key("simulation_s", "s", "wall time of the rest", of(result_in, &SearchResult::simulation_s))
          .include(launch_keys(), &Answer::launch)
          .include(basis_keys(), &Answer::basis);
  return description;
}

void print_what_execute_refuses(const PlanAnswer& answer, std::ostream& out) {
  if (answer.result.best.empty()) return;
  Run run = answer.scenario.run;
  run.data = "chosen later";
  for (const Refusal& refusal : not_executable(answer.scenario.step, run, answer.scenario.growth.given))
    out << "`slipway execute` does not run it yet: " << text_of(refusal) << "\n";
}

}  // namespace

const Dictionary* emitted(const std::optional<std::string>& name) {
  if (!name) return nullptr;
  if (const Dictionary* dictionary = launched_dictionary(*name)) return dictionary;
  const std::vector<std::string> names = launched_names();
  throw UsageError("--emit " + *name + " is unknown" + suggestion(*name, names, "--emit ") +
                   fmt::format("; allowed: {}", fmt::join(names, ", ")));
}

LaunchArguments launch_arguments(const Scenario& scenario, const Dictionary& trainer) {
  return arguments_for(trainer, dictionary_version(trainer, scenario), scenario);
}

void refuse_what_trainer_lacks(const Scenario& scenario, const Dictionary& trainer) {
  for (const std::string& reason : impossible_for(trainer, scenario))
    throw UsageError("--emit " + trainer.name + ": " + reason + ", or leave --emit out");
}

std::string winner_yaml(const Scenario& scenario, const std::vector<std::string>& overrides, const Step& choice,
                        const std::string& file) {
  std::vector<std::string> options = overrides;
  for (const std::string& option : overrides_of(choice)) options.push_back(option);
  const SplitKind split = choice.layout.split;
  if (split != SplitKind::list && load_scenario(scenario.path, overrides).scenario.step.layout.split != split)
    options.emplace_back(split == SplitKind::even ? "layout.split=even" : "layout.split=balanced");
  const LoadResult loaded = load_scenario(scenario.path, options);
  if (!loaded.errors.empty())
    throw std::logic_error("the search found a layout that cannot be loaded; this is a defect of slipway:\n" +
                           describe(loaded.errors));
  Defects defects;
  std::optional<Value> document = parse_document(loaded.scenario.resolved, file, defects);
  if (!document) throw std::logic_error("the resolved scenario is no YAML");
  // If the fabrics were written out, a user who changes the machine would keep the fabrics of this one.
  if (Value* cluster = document->find("cluster"); cluster != nullptr && !loaded.scenario.own_fabrics)
    std::erase_if(cluster->entries, [](const Entry& entry) { return entry.key == "fabrics"; });
  const auto folder = [](const std::string& path) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    return parent.empty() ? std::string(".") : parent;
  };
  anchor(*document, "", folder(scenario.path), folder(file));
  return to_yaml(*document);
}

std::vector<AnswerKey> plan_keys() { return description().keys(); }

int print_text(const PlanAnswer& answer, std::ostream& out, std::ostream& err) {
  out << search_text(answer.scenario, answer.result, answer.options);
  write_winner(answer);
  const auto launch = launch_of(answer);
  if (answer.file && !answer.result.best.empty()) {
    out << "\nwinner: " << *answer.file;
    if (launch && launch->row > 0) out << " (row 1; the arguments below are those of row " << launch->row + 1 << ")";
    out << "\n";
  }
  if (answer.file) print_what_execute_refuses(answer, out);
  if (launch) print_launch(answer, *launch, out);
  return status_of(answer, err);
}

int print_json(const PlanAnswer& answer, std::ostream& out, std::ostream& err) {
  const std::vector<PricedLayout>& best = answer.result.best;
  write_winner(answer);
  const Answer whole{
      answer, best.empty() ? std::nullopt : std::optional(basis_of(with_layout(answer.scenario, best.front().choice))),
      launch_of(answer)};
  out << description().text(whole);
  return status_of(answer, err);
}

// The scenario that a search starts from: model and cluster as written; layout and schedule only have to load.

}  // namespace slipway::scenarios
