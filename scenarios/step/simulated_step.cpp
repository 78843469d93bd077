#include "scenarios/step/simulated_step.h"

namespace slipway::scenarios {
namespace {

std::optional<SteadyState> steady_in(const Plan& plan, const Simulation& simulation) {
  return steady_state(plan.graph, plan.durations, *plan.shortened, simulation.timeline);
}

}  // namespace

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work) {
  SimulationOptions simulation;
  simulation.chains = options.chains;
  std::vector<int> steps{options.steps};
  if (options.makespan && options.steps > 1) steps.push_back(1);
  for (int patience = options.shortened ? 1 : 0;; patience *= 3) {
    SimulatedStep step{work.plan(scenario, {options.folded, patience}), {}, {}, 0};
    std::vector<Simulation> results = work.simulate(step.plan, simulation, steps);
    step.simulation = std::move(results.front());
    if (step.plan.shortened) {
      step.steady = steady_in(step.plan, step.simulation);
      if (!step.steady) continue;
    }
    const bool apart = results.size() > 1;  // the step alone has its own simulation
    const auto steady = apart && step.plan.shortened ? steady_in(step.plan, results.back()) : step.steady;
    if (step.plan.shortened && !steady) continue;
    const Simulation& alone = apart ? results.back() : step.simulation;
    step.makespan_s = alone.timeline.makespan_s + (steady ? steady->left_out_s() : 0);
    return step;
  }
}

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options) {
  return simulated_step(scenario, options,
                        {[](const Scenario& of, const PlanOptions& how) { return plan_of(of, how); },
                         [](const Plan& plan, const SimulationOptions& how, const std::vector<int>& steps) {
                           return simulate_each(plan.graph, plan.scenario.cluster, plan.durations, how, steps);
                         }});
}

}  // namespace slipway::scenarios
