// From a scenario to its simulated step, with the least simulation that gives the same answer:
//
//   folded      only representative ranks                                           (schedules/lower/folding.h)
//   chains      a run of tasks whose middle no other task sees, as one task         (sim/chains.h)
//   shortened   a few periods of micro-batches that repeat                          (schedules/time/periodic.h)
//
// If the dates of a periodic step do not repeat, it is simulated with more periods, and finally as a whole.
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
  std::optional<SteadyState> steady;  // set for a periodic step
  double makespan_s = 0;              // one step alone, with all micro-batches
};

struct StepOptions {
  bool folded = true, chains = true, shortened = true;
  int steps = 3;
  bool makespan = true;  // also simulate a step alone: the first of several shares links with the second
};

// The two long parts of the work; a command adds progress. `simulate` runs the plan's step once for each number of
// steps back to back (simulate_each).
struct StepWorkers {
  std::function<Plan(const Scenario&, const PlanOptions&)> plan;
  std::function<std::vector<Simulation>(const Plan&, const SimulationOptions&, const std::vector<int>& steps)> simulate;
};

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options, const StepWorkers& work);
SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options);

// Null where the whole step was simulated.
inline const SteadyState* steady_of(const SimulatedStep& step) { return step.steady ? &*step.steady : nullptr; }

}  // namespace slipway::scenarios
