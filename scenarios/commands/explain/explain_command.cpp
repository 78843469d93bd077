// `slipway explain`: where a step goes, and what would make it faster.
#include <algorithm>
#include <ostream>
#include <stdexcept>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/commands/command_line/named_trace.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/explain/explanation_text.h"
#include "scenarios/commands/kineto/kineto_trace.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/commands/kineto/step_phases.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/scenario_of_trace.h"
#include "scenarios/predict/step_times.h"
#include "scenarios/search/explanation.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "explain SCENARIO [options]",
      "Says why a step takes as long as it does: where its time goes, what of the machine it depends on,\n"
      "and which single changes of the scenario would make it faster. With a measurement: whether it\n"
      "is as predicted, and else what would explain it.",
      "slipway explain scenarios/examples/llama-8b-64xh100.yaml --measured '1.2 s'");
  options.positional("scenario file (YAML)", 0, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("measured", "TIME", "a measured step: '2.31 s', '12000 tokens/s' of all GPUs, or '410 TFLOP/s' of a GPU")
      .value("run", "TRACE",
             "a trace of a run of this scenario (Chrome JSON of `slipway execute`), or of PyTorch's profiler")
      .value("top", "N", "rows of the table of levers (default 10)")
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(explain_answers)
      .notes(
          "A GPU's time is a mean over ranks; waiting for messages is that which nothing hides. The critical\n"
          "path is the chain of tasks, messages and launches that the step is as long as.\n"
          "Each lever is tried alone, by the simulation and the memory verdict of `slipway plan`, which searches\n"
          "all combinations of layouts. Levers that fit with a probability below 50 % come last.\n"
          "A measured step has many possible causes. They are ordered by how far each alone would have to be\n"
          "from what is predicted, in standard deviations between runs (`slipway list constants`).\n"
          "A trace of `slipway execute` has one cause: its tasks are compared one by one, for each rate of the\n"
          "machine, GPU, node, pipeline rank, port and pair of nodes. Of a profiler's trace the mean step counts,\n"
          "as with --measured; `slipway compare` sets its phases beside a prediction. TFLOP/s are counted as\n"
          "Megatron-LM does.");
  return options;
}

Scenario scenario_of(const Trace& trace, const std::string& path) {
  if (trace.summary.empty())
    throw UsageError(path + " does not say of which scenario it is; give the scenario before --run");
  LoadResult loaded = scenario_of_trace(trace, path);
  if (!loaded.errors.empty())
    throw UsageError("the scenario in " + path + " cannot be used here; give its file before --run:\n" +
                     describe(loaded.errors));
  return std::move(loaded.scenario);
}

double measured_in(const Trace& trace, const std::string& path) {
  try {
    return step_times(trace).median_period_s;
  } catch (const std::invalid_argument& error) {
    throw UsageError(path + ": " + error.what());
  }
}

// A profiler's trace has kernels, no tasks: its steps' mean time is the measurement, as with --measured.
double profiled_step_s(const std::string& path, std::ostream& err) {
  ProgressLine progress(err, "reading " + path);
  const KinetoTrace profiled = read_kineto(path, [&](double share) { progress.report(share); });
  try {
    return phases_of(profiled).step_s;
  } catch (const std::invalid_argument& error) {
    throw UsageError(path + ": " + error.what());
  }
}

Scenario scenario_from(const CommandOptions& options, const std::optional<Trace>& trace) {
  if (!options.arguments().empty()) return checked_scenario(options.arguments()[0], options.all("set"));
  if (!trace) throw UsageError("the scenario file (YAML) is missing; `slipway explain --help` explains it");
  if (!options.all("set").empty()) throw UsageError("--set changes a scenario; give its file before --run");
  return scenario_of(*trace, *options.text("run"));
}

int explain_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const int most_levers = options.integer("top", 10, 1);
  ExplainOptions how;
  std::optional<Trace> trace;
  if (const auto path = options.text("run")) {
    if (may_be_kineto(*path)) {
      how.measured_s = profiled_step_s(*path, err);
    } else {
      trace = trace_from(*path);
    }
  }
  const Scenario scenario = scenario_from(options, trace);
  refuse_uncalibrated(scenario);
  if (trace) {
    how.trace = &*trace;
    how.measured_s = measured_in(*trace, *options.text("run"));
  }
  if (const auto text = options.text("measured")) how.measured_s = seconds_of_measurement(*text, scenario);
  const CatchInterrupts guard;
  how.levers.interrupted = CatchInterrupts::asked;
  how.levers.simulated = std::max(how.levers.simulated, most_levers);
  std::optional<ProgressLine> progress(std::in_place, err, "explaining " + scenario.name);
  how.progress = [&](const std::string& doing, double share) { progress->report(share, doing); };
  const Explanation explanation = explanation_of(scenario, how);
  progress.reset();
  out << (options.has("json") ? explanation_description().text(explanation)
                              : explanation_text(explanation, most_levers));
  return explanation.all_levers_tried ? status_done : status_failed;
}

const RegisterCommand registered({.place = 4,
                                  .name = "explain",
                                  .summary = "say where a step's time goes and what would make it faster",
                                  .run = explain_command,
                                  .answers = explain_answers});

}  // namespace

}  // namespace slipway::scenarios
