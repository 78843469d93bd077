#include "scenarios/simulated_step.h"

namespace slipway {
namespace {

std::optional<SteadyState> steady_in(const Plan& plan, const Simulation& simulation) {
  return steady_state(plan.graph, plan.durations, *plan.shortened, simulation.timeline);
}

// Adds the makespan of a step alone, which the first of several is not: it shares links with the beginning of the
// second. False if a shortened one does not repeat.
bool add_makespan(SimulatedStep& step, SimulationOptions options, const StepWorkers& work) {
  double left_out_s = step.steady ? step.steady->left_out_s() : 0;
  step.makespan_s = step.simulation.timeline.makespan_s + left_out_s;
  if (options.steps == 1) return true;
  options.steps = 1;
  const Simulation alone = work.simulate(step.plan, options, "simulating one step alone");
  if (step.steady) {
    const auto steady = steady_in(step.plan, alone);
    if (!steady) return false;
    left_out_s = steady->left_out_s();
  }
  step.makespan_s = alone.timeline.makespan_s + left_out_s;
  return true;
}

}  // namespace

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work) {
  SimulationOptions simulation;
  simulation.steps = options.steps;
  simulation.chains = options.chains;
  for (int patience = options.shortened ? 1 : 0;; patience *= 3) {
    SimulatedStep step{work.plan(scenario, {options.folded, patience}), {}, {}, 0};
    step.simulation = work.simulate(step.plan, simulation, "simulating " + scenario.name);
    if (step.plan.shortened) {
      step.steady = steady_in(step.plan, step.simulation);
      if (!step.steady) continue;
    }
    if (!options.makespan || add_makespan(step, simulation, work)) return step;
  }
}

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options) {
  return simulated_step(scenario, options,
                        {[](const Scenario& of, const PlanOptions& how) { return plan_of(of, how); },
                         [](const Plan& plan, const SimulationOptions& how, const std::string&) {
                           return simulate(plan.graph, plan.scenario.cluster, plan.durations, how);
                         }});
}

}  // namespace slipway
