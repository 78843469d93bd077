#include "scenarios/predict/simulated_step.h"

#include <cmath>

#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

std::optional<PeriodicTimeline> periodic_in(const PreparedStep& prepared, const Simulation& simulation) {
  return periodic_timeline(prepared.graph, prepared.durations, *prepared.periodic, simulation.timeline);
}

// Contention only makes tasks longer, so the step takes at least as long as its replay. 0 where its periods do not repeat.
double replayed_s_of(const PreparedStep& prepared, int steps) {
  Simulation replayed;
  replayed.timeline = replay(prepared.graph, prepared.durations, steps);
  if (!prepared.periodic) return step_time_of(prepared.graph, replayed.timeline, nullptr);
  const auto periodic = periodic_in(prepared, replayed);
  return periodic ? step_time_of(prepared.graph, replayed.timeline, &*periodic) : 0;
}

}  // namespace

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work) {
  SimulationOptions simulation;
  simulation.chains = options.chains;
  std::vector<int> steps{options.steps};
  if (options.makespan && options.steps > 1) steps.push_back(1);
  for (int patience = options.periodic ? 1 : 0;; patience *= 3) {
    SimulatedStep step{work.prepare(scenario, {options.representatives_only, patience}), {}, {}, 0, 0};
    if (std::isfinite(options.limit_s)) {
      constexpr double rounding = 1 + 1e-6;  // SimGrid ends flows to nine digits each
      step.replayed_s = replayed_s_of(step.prepared, options.steps);
      if (step.replayed_s > options.limit_s * rounding) return step;
    }
    std::vector<Simulation> results =
        work.simulate({step.prepared, step.prepared.cluster, step.prepared.durations, "simulating " + scenario.name},
                      simulation, steps);
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

StepWorkers plain_workers(std::function<void(double)> progress, std::function<bool()> interrupted) {
  return {[](const Scenario& of, const PrepareOptions& how) { return prepared_step(of, how); },
          [=](const SimulationTask& task, SimulationOptions how, const std::vector<int>& steps) {
            if (progress) how.progress = progress;
            if (interrupted) how.interrupted = interrupted;
            return simulate_each(task.prepared.graph, task.cluster, task.durations, how, steps);
          }};
}

PreparedStep replayable_step(const Scenario& scenario) {
  return prepared_unchecked(scenario, {.representatives_only = true, .patience = 1});
}

SimulatedStep replayed_step(const Scenario& scenario) {
  StepOptions options;
  options.makespan = false;
  return simulated_step(
      scenario, options,
      {prepared_unchecked, [](const SimulationTask& task, const auto&, const std::vector<int>& steps) {
         std::vector<Simulation> replayed(1);
         replayed[0].timeline = replay(task.prepared.graph, task.durations, steps.front());
         return replayed;
       }});
}

double replayed_step_s(const Scenario& scenario) {
  const SimulatedStep step = replayed_step(scenario);
  return step_time_of(step.prepared.graph, step.simulation.timeline, periodic_of(step));
}

}  // namespace slipway::scenarios
