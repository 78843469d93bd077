#include <ostream>

#include "scenarios/commands/command.h"
#include "scenarios/commands/options.h"
#include "scenarios/commands/progress.h"
#include "scenarios/json_summary.h"
#include "scenarios/memory_report.h"

namespace slipway {
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
      .json_keys(memory_json_keys())
      .notes(
          "Two verdicts: the closed form within 80 % of the GPU (the author's rule), and the estimate with\n"
          "the trainer's constants within the GPU. A scenario that does not fit is exit status 0.");
  return options;
}

}  // namespace

int memory_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const std::vector<std::string>& overrides = options.all("set");
  const Plan plan = planned(checked_scenario(options.arguments()[0], overrides), err);
  SimulationOptions once;
  once.steps = 1;
  const Simulation simulation = simulate(plan.graph, plan.scenario.cluster, plan.durations, once);
  MemoryReport report = memory_report(plan, simulation.timeline);
  if (!report.verdict.fits || options.has("changes")) {
    Progress progress(err, "pricing changes of " + plan.scenario.name, is_terminal(err));
    report.search =
        search_changes(plan.scenario, overrides, [&](double share) { progress.report(share); });
  }
  out << (options.has("json") ? json_text(plan, report) : report_text(plan, report));
  return status_done;
}

}  // namespace slipway
