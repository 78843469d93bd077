// `slipway plan`: searches the layouts of a model on a cluster.
#include <fmt/format.h>

#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/shard.h"
#include "scenarios/commands/command_line/terminal_timeline.h"
#include "scenarios/commands/plan/answer.h"
#include "scenarios/commands/plan/plan_page.h"
#include "scenarios/language/given_scenarios.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/page.h"
#include "scenarios/search/remedies.h"
#include "scenarios/search/scenario_to_search.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {
namespace {

std::vector<AnswerKeys> plan_answers();

CommandOptions declared_options() {
  CommandOptions options(
      "plan SCENARIO [options]",
      "Searches the best layout: tensor x sequence parallel x pipeline x chunks x context x data x "
      "micro-batch\n"
      "x recompute x ZeRO x schedule. Takes model, cluster, kernels and global batch from the scenario. Ignores its "
      "layout\n"
      "and schedule, except keys named by --keep. The result is exact: it skips layouts only by bounds that never "
      "exceed\n"
      "the simulated step. Schedules: " +
          schedules_with([](const Schedule& schedule) { return schedule.searched; }, ", ") +
          "; to plan\n"
          "with another, set it and --keep schedule.name. The action lists of schedule.csv stay: pipeline, chunks and\n"
          "micro-batches are theirs. Where nodes or links differ: also layers per stage\n"
          "balanced by time, and for the first few layouts other orders of nodes and splits (--keep layout.placement,\n"
          "layout.split).",
      "slipway plan scenarios/examples/llama-70b-1024xh100.yaml -o best.yaml --emit megatron");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .values("keep", "KEY", "keep the scenario's value of this layout or schedule key; may be repeated")
      .value("output", "FILE", "write the winner, row 1, as a scenario file, ready for simulate and execute")
      .letter('o')
      .value("memory-share", "SHARE",
             "share of a GPU's memory that a layout may need with 99 % probability, 0..1 (default: 1)")
      .value("top", "N", "rows of the table (default 10)")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(plan_answers);
  declare_shard_options(options, "layout", "print the winner's launch arguments for megatron or torchtitan; slurm: ");
  options.notes(
      "Layouts are recommended that fit with a probability of 99 %, by the verdict of `slipway memory`.\n"
      "--emit prints arguments of the winner, or of the first row that the trainer runs as planned.\n"
      "Tables are as wide as COLUMNS or the terminal; settings that all rows share are printed below them.\n"
      "A shard simulates what may be among the fastest of its own layouts. --merge simulates what is missing, which "
      "is\n"
      "little, so that its answer is that of one machine.\n"
      "Ctrl-C ends the search and prints the best so far; the exit status is then 1.");
  return options;
}

// The share of a GPU's memory that layouts may need, with recommended_probability.
double share_of(const CommandOptions& options) {
  const std::optional<std::string> text = options.text("memory-share");
  if (!text) return 1;
  std::size_t used = 0;
  double share = 0;
  try {
    share = std::stod(*text, &used);
  } catch (const std::exception&) {
  }
  check_memory_share(used == text->size() ? share : 0, "--memory-share " + *text);
  return share;
}

// With the winner's timeline, which the search does not keep.
void write_page(const std::string& path, const PlanAnswer& answer, std::ostream& err) {
  const ProgressLine progress(err, "writing " + path);
  std::optional<SimulatedStep> winner;
  if (!answer.result.best.empty()) {
    StepOptions whole;
    whole.periodic = false;
    winner = simulated_step(with_layout(answer.scenario, answer.result.best.front().choice), whole);
  }
  write_report(path, report_of(answer, winner ? &*winner : nullptr));
}

// The words that name this search, and the files that it reads.
ShardIdentity identity_of(const CommandOptions& options, const Scenario& scenario) {
  std::vector<std::string> words = options.arguments();
  for (const char* option : {"set", "keep"})
    for (const std::string& value : options.all(option)) words.insert(words.end(), {std::string("--") + option, value});
  for (const char* option : {"memory-share", "top"})
    if (const auto value = options.text(option)) words.insert(words.end(), {std::string("--") + option, *value});
  return scenarios::identity_of(std::move(words), {scenario.files.begin(), scenario.files.end()});
}

KnownPrices merged_prices(const std::string& folder, const ShardIdentity& identity) {
  KnownPrices known;
  for (ShardRow& row : merged_rows(folder, identity, values_of_layout, std::nullopt))
    known[row.part] = std::move(row.values);
  return known;
}

// The file of a shard whose candidates were ranked.
int answer_shard(const CommandOptions& options, const Scenario& scenario, const SearchResult& result,
                 const KnownPrices& found, std::ostream& out, std::ostream& err) {
  if (!result.complete) {
    err << "slipway plan: interrupted; this shard has no file\n";
    return status_failed;
  }
  std::vector<ShardRow> rows;
  for (const auto& [candidate, values] : found) rows.push_back({candidate, {}, values});
  const std::string path = write_shard(options, identity_of(options, scenario), rows);
  const Shard shard = shard_from(*options.text("shard"));
  out << fmt::format("shard {} of {}, {} simulated: {}\n", shard.number, shard.count,
                     counted(static_cast<std::int64_t>(rows.size()), "layout"), path);
  return status_done;
}

std::vector<AnswerKeys> plan_answers() { return {{"plan --json", plan_keys()}}; }

int plan_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  SearchOptions search;
  search.best = options.integer("top", 10, 1);
  check_kept(options.all("keep"), "--keep");
  check_shard_options(options, {"json", "output", "report"});
  if (options.has("shard")) {
    const Shard shard = shard_from(*options.text("shard"));
    search.shard = shard.number, search.shards = shard.count;
  }
  const Dictionary* trainer = emits_slurm(options) ? nullptr : emitted(options.text("emit"));
  const std::string& path = options.arguments()[0];
  const ScenarioSource source = source_of(path, options.all("set"));
  const Scenario scenario = scenario_to_search(source, options.all("keep"));
  if (trainer) refuse_what_trainer_lacks(scenario, *trainer);
  search.memory_share = share_of(options);
  if (const auto file = options.text("output")) check_output("-o", *file, inputs_of(scenario));

  check_report(options, inputs_of(scenario));
  if (emits_slurm(options)) {
    out << slurm_script("plan", args, options, "");
    return status_done;
  }
  KnownPrices known, found;
  if (const auto folder = options.text("merge")) {
    known = merged_prices(*folder, identity_of(options, scenario));
    search.known = &known;
  }
  if (options.has("shard")) {
    make_shard_folder(options);
    search.found = &found;
  }

  const CatchInterrupts guard;
  std::optional<ProgressLine> progress(std::in_place, err, "planning " + scenario.name);
  search.progress = [&](const SearchProgress& now) {
    const std::string counts =
        now.done + now.left > 0 ? fmt::format(", {} done, at most {} left", now.done, now.left) : "";
    progress->report(now.share, now.doing + counts);
  };
  search.columns = table_columns();
  search.interrupted = CatchInterrupts::asked;
  SearchResult result;
  std::vector<std::string> other_ways;
  try {
    const std::vector<std::string> kept = options.all("keep");
    result = search_layouts(scenario, search_space(scenario, kept), search);
    if (result.closest) other_ways = remedies(source, scenario, kept, *result.closest, search);
  } catch (const std::invalid_argument& error) {
    throw UsageError(path + ": " + error.what());
  }
  progress.reset();
  if (options.has("shard")) return answer_shard(options, scenario, result, found, out, err);
  const PlanAnswer answer{scenario, options.all("set"), result, search, trainer, options.text("output"), other_ways};
  if (const auto file = options.text("report")) write_page(*file, answer, err);
  return options.has("json") ? print_json(answer, out, err) : print_text(answer, out, err);
}

const RegisterCommand registered({.place = 3,
                                  .name = "plan",
                                  .summary = "search the best layout of a model on a cluster",
                                  .run = plan_command,
                                  .answers = plan_answers});

}  // namespace

}  // namespace slipway::scenarios
