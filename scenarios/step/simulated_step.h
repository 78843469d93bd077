// From a scenario to its simulated step, with as little simulated as gives the same answer:
//
//   folded      ranks that do the same at the same time, once                    (schedules/lower/folding.h)
//   chains      runs of tasks whose middle nobody else sees, as one              (sim/chains.h)
//   shortened   of micro-batches that repeat each other, a few periods           (schedules/time/periodic.h, steady.h)
//
// A shortened step whose dates do not repeat is tried again with more periods, and at last whole.
// Guarded by tests/scenarios/simulated_step_test.cpp and tests/scenarios/scale_command_test.cpp.
#pragma once

#include <functional>
#include <vector>

#include "scenarios/step/plan.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"

namespace slipway::scenarios {

struct SimulatedStep {
  Plan plan;
  Simulation simulation;
  std::optional<SteadyState> steady;  // of a shortened step
  double makespan_s = 0;              // of a step alone, whole
};

struct StepOptions {
  bool folded = true, chains = true, shortened = true;
  int steps = 3;
  bool makespan = true;  // of a step alone, which the first of several is not: it shares links with the second
};

// How the two long parts of the work are done; a command adds progress. Simulated is the plan's step for each number
// of steps back to back (simulate_each).
struct StepWorkers {
  std::function<Plan(const Scenario&, const PlanOptions&)> plan;
  std::function<std::vector<Simulation>(const Plan&, const SimulationOptions&, const std::vector<int>& steps)> simulate;
};

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work);
SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options);

// For steady_state's users, which know none where a step is whole.
inline const SteadyState* steady_of(const SimulatedStep& step) { return step.steady ? &*step.steady : nullptr; }

}  // namespace slipway::scenarios
