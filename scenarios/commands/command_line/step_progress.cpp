#include "scenarios/commands/command_line/step_progress.h"

#include <malloc.h>

#include <numeric>
#include <optional>
#include <utility>

#include "models/machine/priced_cluster.h"
#include "scenarios/commands/command_line/interrupts.h"
#include "scenarios/predict/readable.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options) {
  return prepared_showing(std::move(scenario), err, options, pace_of(err));
}

PreparedStep prepared_showing(Scenario scenario, std::ostream& err, const PrepareOptions& options, const Pace& pace) {
  ProgressLine progress(err, "preparing " + scenario.name, pace);
  PrepareOptions showing = options;
  showing.on_size = [&](const GraphSize& size) {
    progress.expects(size.seconds, readable_count(size.tasks) + " tasks");
  };
  return prepared_step(std::move(scenario), showing);
}

std::vector<Simulation> simulate_showing(const std::string& what, std::ostream& err, const PreparedStep& prepared,
                                         const PricedCluster& cluster, const Durations& durations,
                                         SimulationOptions how, const std::vector<int>& steps,
                                         OnInterrupt on_interrupt) {
  ProgressLine progress(err, what);
  progress.counts(static_cast<double>(prepared.graph.tasks.size()) * std::accumulate(steps.begin(), steps.end(), 0.0),
                  "tasks");
  how.progress = [&](double share) { progress.report(share); };
  std::optional<CatchInterrupts> guard;
  if (on_interrupt == OnInterrupt::partial) {
    how.interrupted = CatchInterrupts::asked;
    guard.emplace();
  }
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return simulate_each(prepared.graph, cluster, durations, how, steps);
}

StepWorkers showing_workers(std::ostream& err, OnInterrupt on_interrupt) {
  return {
      [&err](const Scenario& of, const PrepareOptions& how) { return prepared_showing(of, err, how); },
      [&err, on_interrupt](const SimulationTask& task, const SimulationOptions& how, const std::vector<int>& steps) {
        return simulate_showing(task.what, err, task.prepared, task.cluster, task.durations, how, steps, on_interrupt);
      }};
}

SimulatedStep simulated_showing(const Scenario& scenario, const StepOptions& options, std::ostream& err,
                                OnInterrupt on_interrupt) {
  return simulated_step(scenario, options, showing_workers(err, on_interrupt));
}

}  // namespace slipway::scenarios
