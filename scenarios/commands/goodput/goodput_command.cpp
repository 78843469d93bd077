// `slipway goodput`: days of training on nodes that fail.
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/goodput/goodput_page.h"
#include "scenarios/commands/goodput/goodput_report.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "goodput SCENARIO [options]",
      "Computes the share of training time that becomes kept steps when nodes fail. Simulates a step, then histories\n"
      "of failures, lost work, restarts, repairs and spare nodes. Prints them beside Daly's closed form (2006), with\n"
      "the best interval between checkpoints by Daly and by Young (1974).",
      "slipway goodput scenarios/examples/llama-8b-64xh100.yaml --days 30 --set 'cluster.mtbf_per_node=2000 h' "
      "--set 'run.checkpoint_cost=20 s' --set 'cluster.restart=5 min' --set 'cluster.repair=4 h' "
      "--set cluster.spare_nodes=1");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("days", "N", "days of training; fractions are allowed (default 30)")
      .value("histories", "N", "histories to simulate, with seeds from run.seed on (default 1000)")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(goodput_answers)
      .notes(
          "Keys: cluster.mtbf_per_node (exponential) or cluster.failures (at known times), cluster.restart, repair "
          "and\n"
          "spare_nodes, run.checkpoint_interval (unset: checkpoint_steps, else the best by Daly) and checkpoint_cost. "
          "Spares do not fail;\n"
          "nodes in use also fail while training restarts or waits. Without spares, training waits for the repair.");
  return options;
}

SimulatedStep simulated(const Scenario& scenario, std::ostream& err) {
  StepOptions options;
  options.makespan = false;
  return simulated_showing(scenario, options, err);
}

int goodput_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const double days = options.number("days", 30);
  constexpr double most_days = 1e6;
  if (days > most_days) throw UsageError("--days: at most 1,000,000 days");
  const int histories = options.integer("histories", 1000, 2);
  const Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  check_report(options, inputs_of(scenario));
  // Reports missing keys before anything is simulated.
  check_histories(training_of(scenario, 1), days, histories);
  const SimulatedStep step = simulated(scenario, err);
  const double step_s = step_time_of(step.prepared.graph, step.simulation.timeline, periodic_of(step));
  const GoodputAnswer answer = [&] {
    ProgressLine progress(err, "simulating failures");
    return goodput_of(step.prepared, step_s, days, histories, [&](int done, int all) {
      progress.counts(all, "histories");
      progress.report(static_cast<double>(done) / all);
    });
  }();
  if (const auto path = options.text("report")) write_report(*path, report_of(scenario, answer));
  out << (options.has("json") ? goodput_json(scenario, answer) : goodput_text(scenario, answer));
  return status_done;
}

const RegisterCommand registered({.place = 6,
                                  .name = "goodput",
                                  .summary = "compute the share of training that survives failing nodes",
                                  .run = goodput_command,
                                  .answers = goodput_answers});

}  // namespace

}  // namespace slipway::scenarios
