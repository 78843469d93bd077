#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/memory/memory_page.h"
#include "scenarios/commands/memory/report.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "memory SCENARIO [options]",
      "Prints each pipeline rank's memory by part, on the simulated timeline and as cluster.trainer's trainer\n"
      "takes it, with an interval and the probability that it fits. Names the stage that is least likely to\n"
      "fit and the task at its peak. If the scenario does not fit, prints the changes that make it fit, and\n"
      "the one that costs the least time.",
      "slipway memory scenarios/examples/llama-8b-64xh100.yaml --set layout.tensor=1 "
      "--set layout.sequence_parallel=false --set layout.data=16");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .flag("changes", "try and price changes that save memory even if the scenario fits")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(memory_answers)
      .notes(
          "It fits if that is more likely than not, and cautiously if it fits with 99 %. The constants are fitted\n"
          "to the published runs of all trainers; without cluster.trainer, those of no particular trainer hold, and\n"
          "intervals are wider. The exit status is 0 even if the scenario does not fit.");
  return options;
}

// Simulates one step, without repetitions. `whole`: with every micro-batch.
SimulatedStep simulated(const Scenario& scenario, bool whole, std::ostream& err) {
  StepOptions once;
  once.steps = 1;
  once.periodic = !whole;
  return simulated_showing(scenario, once, err);
}

MemoryReport judged(const SimulatedStep& step, std::ostream& err) {
  const ProgressLine progress(err, "counting the memory of " + step.prepared.scenario.name);
  return memory_report(step.prepared, step.simulation.timeline, periodic_of(step));
}

int memory_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const std::vector<std::string>& overrides = options.all("set");
  const Scenario scenario = checked_scenario(options.arguments()[0], overrides);
  check_report(options, inputs_of(scenario));
  const SimulatedStep step = simulated(scenario, options.has("report"), err);
  const PreparedStep& prepared = step.prepared;
  MemoryReport report = judged(step, err);
  if (!report.verdict.fits || options.has("changes")) {
    ProgressLine progress(err, "pricing changes of " + prepared.scenario.name);
    report.search = search_changes(prepared.scenario, overrides, [&](double share) { progress.report(share); });
  }
  if (const auto path = options.text("report")) write_report(*path, report_of(step, report));
  out << (options.has("json") ? json_text(prepared, report) : report_text(prepared, report));
  return status_done;
}

const RegisterCommand registered({.place = 2,
                                  .name = "memory",
                                  .summary = "print a layout's memory by part, and changes that make it fit",
                                  .run = memory_command,
                                  .answers = memory_answers});

}  // namespace

}  // namespace slipway::scenarios
