#include "scenarios/step/simulated_step.h"

namespace slipway::scenarios {
namespace {

std::optional<PeriodicTimeline> periodic_in(const PreparedStep& prepared, const Simulation& simulation) {
  return periodic_timeline(prepared.graph, prepared.durations, *prepared.periodic, simulation.timeline);
}

}  // namespace

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work) {
  SimulationOptions simulation;
  simulation.chains = options.chains;
  std::vector<int> steps{options.steps};
  if (options.makespan && options.steps > 1) steps.push_back(1);
  for (int patience = options.periodic ? 1 : 0;; patience *= 3) {
    SimulatedStep step{work.prepare(scenario, {options.representatives_only, patience}), {}, {}, 0};
    std::vector<Simulation> results = work.simulate(step.prepared, simulation, steps);
    step.simulation = std::move(results.front());
    if (step.prepared.periodic) {
      step.periodic = periodic_in(step.prepared, step.simulation);
      if (!step.periodic) continue;
    }
    const bool apart = results.size() > 1;  // the step alone has its own simulation
    const auto periodic = apart && step.prepared.periodic ? periodic_in(step.prepared, results.back()) : step.periodic;
    if (step.prepared.periodic && !periodic) continue;
    const Simulation& alone = apart ? results.back() : step.simulation;
    step.makespan_s = alone.timeline.makespan_s + (periodic ? periodic->left_out_s() : 0);
    return step;
  }
}

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options) {
  return simulated_step(scenario, options,
                        {[](const Scenario& of, const PrepareOptions& how) { return prepared_step(of, how); },
                         [](const PreparedStep& prepared, const SimulationOptions& how, const std::vector<int>& steps) {
                           return simulate_each(prepared.graph, prepared.scenario.cluster, prepared.durations, how,
                                                steps);
                         }});
}

SimulatedStep replayed_step(const Scenario& scenario) {
  StepOptions options;
  options.makespan = false;
  return simulated_step(
      scenario, options,
      {prepared_unchecked, [](const PreparedStep& prepared, const auto&, const std::vector<int>& steps) {
         std::vector<Simulation> replayed(1);
         replayed[0].timeline = replay(prepared.graph, prepared.durations, steps.front());
         return replayed;
       }});
}

double replayed_step_s(const Scenario& scenario) {
  const SimulatedStep step = replayed_step(scenario);
  return step_time_of(step.prepared.graph, step.simulation.timeline, periodic_of(step));
}

}  // namespace slipway::scenarios
