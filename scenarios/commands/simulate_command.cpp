#include <ostream>

#include "scenarios/chrome_trace.h"
#include "scenarios/commands/command.h"
#include "scenarios/commands/options.h"
#include "scenarios/commands/outputs.h"
#include "scenarios/commands/progress.h"
#include "scenarios/json_summary.h"
#include "scenarios/output_file.h"
#include "scenarios/prediction.h"
#include "scenarios/terminal_timeline.h"
#include "schedules/graph/timeline_trace.h"

namespace slipway {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "simulate SCENARIO [options]",
      "Predicts step time, MFU, bubble, exposed communication, memory and cost of a scenario by\n"
      "running its task graph on SimGrid. Needs no GPU and starts nothing.",
      "slipway simulate scenarios/examples/llama-8b-64xh100.yaml --set layout.tensor=4 "
      "--set layout.data=4 --trace t.json");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("trace", "FILE", "write the predicted timeline as Chrome/Perfetto JSON")
      .flag("json", "print the summary as JSON on standard output and nothing else there")
      .value("steps", "N",
             "steps to simulate back to back; the last two give the steady period (default 3)")
      .flag("unfolded", "simulate every rank, also those that do the same as another at the same time")
      .flag("exact", "simulate every rank, task by task")
      .flag("help-json", "print the meaning and unit of every JSON key")
      .notes(
          "A scenario that needs more memory than a GPU has is simulated all the same: the verdict is\n"
          "`fits: no` and the exit status 0. Ranks that do the same at the same time are simulated once, with\n"
          "the same result, and so are runs of tasks whose middle nobody else sees (the last line says how many).\n"
          "--unfolded and --trace simulate all ranks, --exact all ranks task by task. run.tokens adds days, GPU-hours and, with\n"
          "cluster.price_per_gpu_hour, cost.");
  return options;
}

void write_trace(const std::string& path, const Plan& plan, const Simulation& simulation) {
  OutputFile file(path);
  Trace trace = trace_of(plan.graph, simulation.timeline, "simgrid");
  trace.scenario = plan.scenario.name;
  trace.summary = plan.scenario.resolved;
  write_chrome_trace(file.stream(), trace);
  file.commit();
}

Simulation simulated(const Plan& plan, SimulationOptions options, const std::string& what, std::ostream& err) {
  Progress progress(err, what, is_terminal(err));
  options.progress = [&](double share) { progress.report(share); };
  return simulate(plan.graph, plan.scenario.cluster, plan.durations, options);
}

// The first of several steps shares cores and links with the next one's beginning; alone it does not.
double makespan_of_one_step(const Plan& plan, const Simulation& done, SimulationOptions options, std::ostream& err) {
  if (done.timeline.steps == 1) return done.timeline.makespan_s;
  options.steps = 1;
  return simulated(plan, options, "simulating one step alone", err).timeline.makespan_s;
}

Prediction predicted(const Plan& plan, const Simulation& simulation, std::ostream& err) {
  const Ticking ticking(err, "working out memory and shares");
  return prediction_of(plan, simulation);
}

}  // namespace

int simulate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (args.size() == 1 && args[0] == "--help-json") {
    out << describe(simulate_json_keys());
    return status_done;
  }
  if (!options.parse(args, out)) return status_done;
  SimulationOptions how;
  how.steps = options.integer("steps", 3, 1);
  how.chains = !options.has("exact");
  Scenario scenario = checked_scenario(options.arguments()[0], options.all("set"));
  if (const auto path = options.text("trace")) check_output("--trace", *path, inputs_of(scenario));
  const bool all_ranks = options.has("exact") || options.has("unfolded") || options.text("trace");
  const Plan plan = planned(std::move(scenario), err, !all_ranks);
  const Simulation simulation = simulated(plan, how, "simulating " + plan.scenario.name, err);
  Prediction prediction = predicted(plan, simulation, err);
  prediction.step.makespan_s = makespan_of_one_step(plan, simulation, how, err);
  if (const auto path = options.text("trace")) {
    const Ticking ticking(err, "writing " + *path);
    write_trace(*path, plan, simulation);
  }
  if (options.has("json")) {
    out << json_text(plan, prediction);
  } else {
    out << report_text(plan, prediction)
        << draw(picture_of(plan.graph, simulation.timeline, simulation.timeline.steps - 1),
                terminal_width());
    if (options.text("trace"))
      out << "\ntrace: " << *options.text("trace") << " (open in https://ui.perfetto.dev)\n";
  }
  return status_done;
}

}  // namespace slipway
