// From a scenario to its simulated step, with the least simulation that gives the same answer:
//
//   representatives   one rank of those that do the same at the same time           (schedules/lower/representatives.h)
//   chains            a run of tasks whose middle no other task sees, as one task   (sim/chains.h)
//   periodic          a few periods of micro-batches that repeat                    (schedules/time/periodic.h)
//
// If the dates of a periodic step do not repeat, it is simulated with more periods, and finally as a whole.
// Guarded by tests/scenarios/simulated_step_test.cpp and tests/scenarios/scale_command_test.cpp.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "scenarios/predict/prepared_step.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"

namespace slipway::scenarios {

struct SimulatedStep {
  PreparedStep prepared;
  Simulation simulation;
  std::optional<PeriodicTimeline> periodic;  // set for a periodic step
  double makespan_s = 0;                     // one step alone, with all micro-batches
  double replayed_s =
      0;  // seconds of the step without contention, where options ask for them; 0: its dates do not repeat
};

struct StepOptions {
  bool representatives_only = true, chains = true, periodic = true;
  int steps = 3;
  bool makespan = true;  // also simulate a step alone: the first of several shares links with the second
  double limit_s = std::numeric_limits<double>::infinity();  // a step whose replay takes longer is not simulated
};

// A prepared step to be simulated once for each number of steps back to back (simulate_each), on its own cluster or on
// another with the durations there.
struct SimulationTask {
  const PreparedStep& prepared;
  const PricedCluster& cluster;
  const Durations& durations;
  std::string what;  // "simulating llama-8b", for progress
};

// The two long parts of the work; a command adds progress.
struct StepWorkers {
  std::function<PreparedStep(const Scenario&, const PrepareOptions&)> prepare;
  std::function<std::vector<Simulation>(const SimulationTask&, const SimulationOptions&, const std::vector<int>& steps)>
      simulate;
};
// prepared_step and simulate_each.
// `progress` and `interrupted` are asked while a step is simulated, as SimulationOptions says.
StepWorkers plain_workers(std::function<void(double)> progress = nullptr, std::function<bool()> interrupted = nullptr);

SimulatedStep simulated_step(const Scenario& scenario, const StepOptions& options,
                             const StepWorkers& work = plain_workers());

// A prepared step for replays, without checks: representatives, and a few periods. Throws std::invalid_argument where the
// cluster cannot price it.
PreparedStep replayable_step(const Scenario& scenario);
// The same as simulated_step in a replay without contention and without checks. Throws std::invalid_argument where the cluster cannot price
// it.
SimulatedStep replayed_step(const Scenario& scenario);
// Seconds of a step in it.
double replayed_step_s(const Scenario& scenario);

// Null where the whole step was simulated.
inline const PeriodicTimeline* periodic_of(const SimulatedStep& step) {
  return step.periodic ? &*step.periodic : nullptr;
}

}  // namespace slipway::scenarios
