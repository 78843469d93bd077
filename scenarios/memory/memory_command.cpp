#include <ostream>

#include "scenarios/command_line/command.h"
#include "scenarios/command_line/options.h"
#include "scenarios/command_line/progress.h"
#include "scenarios/memory/report.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "memory SCENARIO [options]",
      "Says what each pipeline rank keeps in memory, part by part: in closed form (Fujii et al. 2024), on\n"
      "the simulated timeline, and as the trainer of cluster.stack takes it. Names the stage that is\n"
      "fullest, the task that peaks there and, where it does not fit, the change that fits and costs the\n"
      "least time.",
      "slipway memory scenarios/examples/llama-8b-64xh100.yaml --set layout.tensor=1 "
      "--set layout.sequence_parallel=false --set layout.data=16");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .flag("changes", "try and price changes that save memory although it fits")
      .flag("json", "print the answer as JSON on standard output and nothing else there")
      .json_keys(memory_answers())
      .notes(
          "The verdict is that of the largest of the three: it fits within the GPU, and cautiously within 80 % of\n"
          "it (Fujii et al. 2024), or within the share that the trainer's constants say. The estimate without\n"
          "cluster.stack is the tensors alone, each counted once; the closed form has no vote beside a trainer's\n"
          "own constants. A scenario that does not fit is exit status 0.");
  return options;
}

// Simulates one step, without repetitions. Prints progress on `err` when it takes long.
SimulatedStep simulated(const Scenario& scenario, std::ostream& err) {
  StepOptions once;
  once.steps = 1;
  return simulated_step(scenario, once,
                        {[&](const Scenario& of, const PlanOptions& how) {
                           const Ticking ticking(err, "laying out the tasks of " + of.name);
                           return plan_of(of, how);
                         },
                         [&](const Plan& plan, const SimulationOptions& how, const std::vector<int>& steps) {
                           const Ticking ticking(err, "simulating " + plan.scenario.name);
                           return simulate_each(plan.graph, plan.scenario.cluster, plan.durations, how, steps);
                         }});
}

MemoryReport judged(const SimulatedStep& step, std::ostream& err) {
  const Ticking ticking(err, "counting the memory of " + step.plan.scenario.name);
  return memory_report(step.plan, step.simulation.timeline, steady_of(step));
}

}  // namespace

int memory_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const std::vector<std::string>& overrides = options.all("set");
  const SimulatedStep step = simulated(checked_scenario(options.arguments()[0], overrides), err);
  const Plan& plan = step.plan;
  MemoryReport report = judged(step, err);
  if (!report.verdict.fits || options.has("changes")) {
    ProgressLine progress(err, "pricing changes of " + plan.scenario.name, is_terminal(err));
    report.search = search_changes(plan.scenario, overrides, [&](double share) { progress.report(share); });
  }
  out << (options.has("json") ? json_text(plan, report) : report_text(plan, report));
  return status_done;
}

}  // namespace slipway::scenarios
