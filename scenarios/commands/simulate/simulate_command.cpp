#include <fmt/format.h>

#include <numeric>
#include <ostream>

#include "models/machine/priced_cluster.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/commands/command_line/terminal_timeline.h"
#include "scenarios/commands/simulate/prediction_text.h"
#include "scenarios/commands/simulate/simulate_report.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/beside.h"
#include "scenarios/predict/chrome_trace.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/readable.h"
#include "scenarios/report/page.h"
#include "schedules/draw/timeline_trace.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {
namespace {

std::vector<AnswerKeys> simulate_answers();

CommandOptions declared_options() {
  CommandOptions options("simulate SCENARIO [options]",
                         "Predicts step time, MFU, bubble, exposed communication, memory and cost of a scenario by\n"
                         "running its task graph on SimGrid. Needs no GPU and starts nothing.",
                         "slipway simulate scenarios/examples/llama-8b-64xh100.yaml --set layout.tensor=4 "
                         "--set layout.data=4 --trace t.json");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("trace", "FILE", "write the predicted timeline as Chrome/Perfetto JSON")
      .value("report", "FILE", report_meaning)
      .flag("json", "print only the summary, as JSON, on standard output")
      .flag("timeline", "add the tasks of the last step to --json, as columns: those of simulated ranks")
      .value("steps", "N", "steps to simulate in a row, 2 or more; the last two give the step time (default 3)")
      .flag("all-ranks", "simulate every rank, not only representative ranks")
      .formerly("unfolded")
      .flag("whole", "simulate every micro-batch, not only a few periods")
      .flag("exact", "simulate every rank and micro-batch, task by task")
      .value("beside", "FILE", "a second scenario that trains at the same time on its own nodes; see below")
      .values("beside-set", "KEY=VALUE", "override a key of that scenario; may be repeated")
      .value("place", "HOW",
             "order of the two jobs' GPUs: packed (default), alternate-nodes or alternate-gpus; with --beside")
      .json_keys(simulate_answers)
      .notes(
          "A scenario that needs more memory than a GPU has is still simulated. The verdict is then\n"
          "`fits: no`, with exit status 0. run.tokens adds days, GPU-hours and, with\n"
          "cluster.price_per_gpu_hour, cost. On a cluster with slow GPUs or ports (cluster.stragglers, slow_links)\n"
          "the healthy cluster is simulated too, to print their cost and the ranks that wait.\n"
          "Identical work is simulated once, with the same answer; the last line prints how much: representative\n"
          "ranks (--all-ranks: all), a few periods of micro-batches that repeat (--whole, --trace, --timeline,\n"
          "--report: all micro-batches), and chains of tasks as one (--exact: every rank, micro-batch and task). The\n"
          "trace always has every rank.\n"
          "Ctrl-C ends the simulation and prints its progress; the exit status is then 1.\n"
          "--beside: the scenario's cluster gets the nodes of the second scenario too, joined by the same\n"
          "fabrics. Prints each job's step time alone on its GPUs and while both run.");
  return options;
}

void write_trace(const std::string& path, const PreparedStep& prepared, const Simulation& simulation,
                 const std::optional<StepInterval>& interval) {
  OutputFile file(path);
  Trace header = trace_header(prepared.graph, simulation.timeline, "simgrid");
  header.scenario = prepared.scenario.name;
  header.summary = prepared.scenario.resolved;
  header.peak_bytes = rank_peaks(prepared, simulation.timeline);
  if (interval) header.step_low_s = interval->low_s, header.step_high_s = interval->high_s;
  ChromeTraceWriter writer(file.stream(), header);
  each_record(prepared.graph, simulation.timeline, [&](const TraceRecord& record, TaskId) { writer.write(record); });
  writer.finish();
  file.commit();
}

// Progress of each pipeline rank in a step that was interrupted.
std::string partial_text(const PartialSimulation& partial) {
  std::string text = fmt::format("interrupted: {} of {} done ({}), {} of simulated time\n",
                                 readable_count(static_cast<double>(partial.done)),
                                 counted(static_cast<std::int64_t>(partial.tasks), "task"),
                                 readable_share(static_cast<double>(partial.done) / static_cast<double>(partial.tasks)),
                                 readable_seconds(partial.simulated_s));
  std::vector<std::vector<std::string>> rows{{"pipeline rank", "is at", "of step"}};
  for (std::size_t stage = 0; stage < partial.positions.size(); ++stage) {
    const PartialSimulation::Position& at = partial.positions[stage];
    rows.push_back({fmt::format("{} (rank {})", stage, at.rank), at.label.empty() ? "nothing yet" : at.label,
                    fmt::format("{} of {}", at.step + 1, partial.steps)});
  }
  return text + aligned_table(rows, "  ");
}

StepOptions step_options(const CommandOptions& options) {
  StepOptions how;
  const bool exact = options.has("exact"),
             trace = options.has("trace") || options.has("report") || options.has("timeline");
  how.steps = options.integer("steps", 3, 2);
  how.representatives_only = !exact && !options.has("all-ranks");
  how.periodic = !exact && !trace && !options.has("whole");
  how.chains = !exact;
  return how;
}

int answer(const Scenario& scenario, const CommandOptions& options, std::ostream& out, std::ostream& err) {
  const StepOptions how = step_options(options);
  const PredictedStep predicted = predict(scenario, how, showing_workers(err, OnInterrupt::partial));
  const SimulatedStep& step = predicted.step;
  const Prediction& prediction = predicted.prediction;
  if (const auto path = options.text("trace")) {
    const ProgressLine progress(err, "writing " + *path);
    write_trace(*path, step.prepared, step.simulation, prediction.interval);
  }
  if (const auto path = options.text("report")) {
    const ProgressLine progress(err, "writing " + *path);
    write_report(*path, report_of(step, prediction));
  }
  if (options.has("json")) {
    std::optional<TimelineColumns> timeline;
    if (options.has("timeline")) timeline = timeline_columns(step.prepared.graph, step.simulation.timeline);
    out << json_text(step.prepared, prediction, std::move(timeline));
  } else {
    out << report_text(step.prepared, prediction)
        << draw(picture_of(step.prepared.graph, step.simulation.timeline, step.simulation.timeline.steps - 1),
                terminal_width());
    if (options.text("trace")) out << "\ntrace: " << *options.text("trace") << " (open in https://ui.perfetto.dev)\n";
    if (options.text("report")) out << "\nreport: " << *options.text("report") << " (open in a browser)\n";
  }
  return status_done;
}

Interleaving interleaving_of(const CommandOptions& options) {
  const std::string name = options.text("place").value_or("packed");
  if (const auto interleaving = value_in(interleaving_names, name)) return *interleaving;
  throw UsageError("--place " + name + " is not known; allowed: " + all_names(interleaving_names));
}

int answer_beside(const Scenario& scenario, const CommandOptions& options, std::ostream& out, std::ostream& err) {
  for (const char* other : {"trace", "timeline", "report", "steps", "all-ranks", "whole", "exact"})
    if (options.has(other))
      throw UsageError(std::string("--") + other + " does not go with --beside, which simulates every rank of both");
  const Scenario second = checked_scenario(*options.text("beside"), options.all("beside-set"), "--beside-set");
  std::optional<ProgressLine> shown;
  std::string showing;
  const auto progress = [&](const std::string& what, double share) {
    if (what != showing) shown.emplace(err, showing = what);
    shown->report(share);
  };
  const Neighbours neighbours = beside(scenario, second, interleaving_of(options), progress);
  shown.reset();
  out << (options.has("json") ? neighbours_description().text(neighbours) : beside_text(neighbours));
  return status_done;
}

std::vector<AnswerKeys> simulate_answers() {
  return {{"simulate --json", prediction_keys()}, {"simulate --beside --json", neighbours_description().keys()}};
}

int simulate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const ExitOnInterrupt planning;
  const Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  if (options.has("beside")) return answer_beside(scenario, options, out, err);
  for (const char* only : {"place", "beside-set"})
    if (options.has(only)) throw UsageError(std::string("--") + only + " goes with --beside FILE");
  if (options.has("timeline") && !options.has("json")) throw UsageError("--timeline goes with --json");
  if (const auto path = options.text("trace")) check_output("--trace", *path, inputs_of(scenario));
  check_report(options, inputs_of(scenario));
  try {
    return answer(scenario, options, out, err);
  } catch (const SimulationInterrupted& stop) {
    (options.has("json") ? err : out) << partial_text(stop.partial);
    return status_failed;
  }
}

const RegisterCommand registered({.place = 1,
                                  .name = "simulate",
                                  .summary = "predict step time, MFU, memory and cost of a scenario",
                                  .run = simulate_command,
                                  .answers = simulate_answers});

}  // namespace

}  // namespace slipway::scenarios
