// Preparing and simulating a step with a progress line, for the commands that answer with one step.
// Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/predict/simulated_step.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

// prepared_step.
PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options = {});
PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options, const Pace& pace);

// The effect of Ctrl-C on a simulation: end the process, or throw SimulationInterrupted with the finished part.
enum class OnInterrupt { exit, partial };

// simulate_each; `what` begins the line. Returns kept memory to the system before, for the processes that simulate.
std::vector<Simulation> simulate_showing(const std::string& what, std::ostream& err, const PreparedStep& prepared,
                                         const PricedCluster& cluster, const Durations& durations,
                                         SimulationOptions how, const std::vector<int>& steps,
                                         OnInterrupt on_interrupt = OnInterrupt::exit);

// The work of simulated_step and predict with progress lines on `err`, which must outlive it.
StepWorkers showing_workers(std::ostream& err, OnInterrupt on_interrupt = OnInterrupt::exit);
// simulated_step.
SimulatedStep simulated_showing(const Scenario& scenario, const StepOptions& options, std::ostream& err,
                                OnInterrupt on_interrupt = OnInterrupt::exit);

}  // namespace slipway::scenarios
