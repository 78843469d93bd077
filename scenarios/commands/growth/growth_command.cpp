// `slipway growth`: a training with a growing batch. With --fit: the fit of its loss and noise to curves of many runs,
// or to the norms of an executed run.
#include <filesystem>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/growth/comparison.h"
#include "scenarios/commands/growth/curves_file.h"
#include "scenarios/commands/growth/executed_losses.h"
#include "scenarios/commands/growth/fit_report.h"
#include "scenarios/commands/growth/growth_page.h"
#include "scenarios/commands/growth/run_fit_report.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/quantity.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

std::vector<AnswerKeys> growth_answers();

constexpr int default_rungs = 7;

CommandOptions declared_options() {
  CommandOptions options(
      "growth SCENARIO [options]\n       slipway growth --fit CURVES.csv|RUN [options]",
      "Computes the time that a growing batch saves. Simulates steps of several batches, follows the "
      "loss with the\n"
      "scenario's batch rule from the noise of its gradients, and compares the time to a loss, or to a number of "
      "tokens, with\n"
      "constant batches and the other rules (Lau et al. 2024). `slipway execute` trains by the same rules.",
      "slipway growth scenarios/studies/lau-2024/gpt3-175b-8192xh100.yaml --set training.growth.eta=0.8");
  options.positional("scenario file (YAML)", 0, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("rungs", "N", "number of batches to simulate; step times between them are interpolated (default 7)")
      .value("fit", "FILE",
             "fit training.loss and training.noise instead: to a table of losses (columns below), or to a run of "
             "`slipway execute` with the norm test (its folder)")
      .values("unseen", "RUN",
              "with --fit RUN: also predict the losses of this run, which the fit does not use; may be repeated")
      .value("floor", "NATS", "with --fit: training.loss.floor, which curves cannot determine (default 0)")
      .value("noise-exponent", "N",
             "with --fit: training.noise.exponent, which curves cannot determine (default 1/0.21, Kaplan et al. "
             "2020); for a run it is fitted")
      .value("after", "TOKENS", "with --fit: leave out losses before this many tokens, such as '200 M' (default: none)")
      .value("target", "NATS",
             "with --fit: loss for which to predict the tokens (default: the lowest that all runs reach)")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(growth_answers)
      .notes(
          "Keys: training.growth.rule, largest, and the rule's own (eta; warmup; stages), "
          "training.loss and\n"
          "training.noise, which hold for one model, data and optimizer and have no defaults, and an end: "
          "run.tokens,\n"
          "training.target_loss, or both. Rules with missing keys are not "
          "compared.\n"
          "The layout stays. Every batch is rounded up to whole micro-batches per replica, in numbers "
          "that the\n"
          "schedule can run.\n"
          "Columns of CURVES.csv: submission, run, sequence, global_batch, learning_rate, tokens, loss; "
          "runs with one batch\n"
          "throughout.");
  return options;
}

// Accepts 0, unlike CommandOptions::number: a floor of 0 and the exponent 0 of a constant noise scale are allowed.
// `key`: the scenario key of the value, with its limit.
double from_zero(const CommandOptions& options, const std::string& name, const std::string& what,
                 const std::string& key, double otherwise) {
  const auto text = options.text(name);
  if (!text) return otherwise;
  const auto value = quantity(*text, Unit::pure);
  const double most = key_of(scenario_keys(), key)->max;
  if (!value || *value < 0 || *value > most)
    throw UsageError("--" + name + " " + *text + " is no " + what + "; allowed: a number from 0 to " +
                     number_text(most));
  return *value;
}

FitRequest fit_request(const CommandOptions& options) {
  FitRequest request;
  request.assumed.floor = from_zero(options, "floor", "loss in nats", "training.loss.floor", 0);
  request.assumed.noise_exponent =
      from_zero(options, "noise-exponent", "exponent", "training.noise.exponent", request.assumed.noise_exponent);
  if (options.has("target"))
    request.target_loss = from_zero(options, "target", "loss in nats", "training.target_loss", 0);
  if (const auto text = options.text("after")) {
    const auto tokens = quantity(*text, Unit::tokens);
    if (!tokens || *tokens < 0)
      throw UsageError("--after " + *text + " is no number of tokens; allowed: such as '200 M'");
    request.from_tokens = *tokens;
  }
  return request;
}

int fit_run_of(const CommandOptions& options, const FitRequest& request, std::ostream& out) {
  RunFitRequest own{request.assumed.floor, {}, request.from_tokens, request.target_loss};
  if (options.has("noise-exponent")) own.exponent = request.assumed.noise_exponent;
  std::vector<ExecutedRun> unseen;
  for (const std::string& folder : options.all("unseen")) {
    unseen.push_back(read_executed_run(folder));
    if (std::filesystem::equivalent(folder, *options.text("fit")))
      throw UsageError("--unseen " + folder + " is the run of --fit, which the fit has seen; give another run");
  }
  const RunFitAnswer answer = fitted_run(read_executed_run(*options.text("fit")), std::move(unseen), own);
  if (const auto path = options.text("report")) write_report(*path, report_of(answer));
  out << (options.has("json") ? run_fit_description().text(answer) : run_fit_text(answer));
  return status_done;
}

int fit(const CommandOptions& options, std::ostream& out, std::ostream& err) {
  if (!options.arguments().empty() || options.has("set") || options.has("rungs"))
    throw UsageError("--fit reads curves and no scenario; leave out the scenario, --set and --rungs");
  const FitRequest request = fit_request(options);
  check_report(options, {*options.text("fit")});
  if (std::filesystem::is_directory(*options.text("fit"))) return fit_run_of(options, request, out);
  if (options.has("unseen")) throw UsageError("--unseen goes with --fit RUN, the folder of an executed run");
  CurvesFile curves = read_curves(*options.text("fit"));
  const ProgressLine progress(err, "fitting " + curves.path);
  const FitAnswer answer = fitted_curves(std::move(curves), request);
  if (const auto path = options.text("report")) write_report(*path, report_of(answer));
  out << (options.has("json") ? fit_description().text(answer) : fit_text(answer));
  return status_done;
}

std::vector<AnswerKeys> growth_answers() {
  return {{"growth --json", growth_keys()},
          {"growth --fit CURVES.csv --json", fit_description().keys()},
          {"growth --fit RUN --json", run_fit_description().keys()}};
}

int growth_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  if (options.has("fit")) return fit(options, out, err);
  for (const char* only : {"floor", "noise-exponent", "after", "target", "unseen"})
    if (options.has(only)) throw UsageError(std::string("--") + only + " goes with --fit FILE");
  if (options.arguments().empty())
    throw UsageError("a scenario file, or --fit CURVES.csv, is missing; see `slipway growth --help`");
  const int rungs = options.integer("rungs", default_rungs, 2);
  const Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  check_growth_is_asked(scenario);
  check_report(options, inputs_of(scenario));
  ProgressLine progress(err, "simulating " + scenario.name);
  const GrowthAnswer answer =
      growth_of(scenario, rungs, [&](double share, const std::string& detail) { progress.report(share, detail); });
  if (const auto path = options.text("report")) write_report(*path, report_of(scenario, answer));
  out << (options.has("json") ? growth_json(scenario, answer) : growth_text(scenario, answer));
  return status_done;
}

const RegisterCommand registered({.place = 7,
                                  .name = "growth",
                                  .summary = "compute the time that a growing batch saves",
                                  .run = growth_command,
                                  .answers = growth_answers});

}  // namespace

}  // namespace slipway::scenarios
