#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "schedules/graph/durations.h"
#include "sim/calendar.h"
#include "sim/engine.h"
#include "sim/isolate.h"

namespace slipway {
namespace {

// What the simulating process leaves behind; start and end times follow it in memory.
struct Outcome {
  std::atomic<std::uint64_t> done = 0;
  std::atomic<double> now = 0;
  std::uint64_t flows = 0, units = 0;
  double wall_s = 0;
};

std::size_t instances_of(const TaskGraph& graph, int steps) {
  if (steps < 1)
    throw std::invalid_argument(fmt::format("cannot simulate {} steps; at least 1 is needed", steps));
  if (graph.order.size() != graph.tasks.size())
    throw std::invalid_argument("the graph has no global order; call set_global_order first");
  const std::size_t count = graph.tasks.size() * static_cast<std::size_t>(steps);
  if (count >= std::numeric_limits<Instance>::max())
    throw std::invalid_argument(
        fmt::format("{} tasks × {} steps are more than the simulator numbers; use fewer steps",
                    graph.tasks.size(), steps));
  return count;
}

}  // namespace

Simulation simulate(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                    const SimulationOptions& options) {
  instances_of(graph, options.steps);  // refuses first what could not be simulated
  return simulate(graph, cluster, plan_simulation(graph, cluster, durations, options.collectives), options);
}

Simulation simulate(const TaskGraph& graph, const Cluster& cluster, SimulationPlan plan,
                    const SimulationOptions& options) {
  const std::size_t count = instances_of(graph, options.steps);
  SharedMemory memory(sizeof(Outcome) + 2 * count * sizeof(double));
  Outcome& outcome = *new (memory.data()) Outcome;
  auto* times = reinterpret_cast<double*>(memory.data() + sizeof(Outcome));
  const SimulationOutput output{
      {times, count}, {times + count, count}, &outcome.done, &outcome.now, &outcome.flows, &outcome.units, &outcome.wall_s};
  const auto tick = [&] {
    if (options.interrupted && options.interrupted())
      throw SimulationInterrupted(partial_simulation(graph, options.steps, outcome.now.load(), outcome.done.load(),
                                                     output.start, output.end));
    if (options.progress) options.progress(static_cast<double>(outcome.done.load()) / static_cast<double>(count));
  };
  run_isolated([&] { run_engine(graph, cluster, plan, options.steps, options.chains, output); }, tick);

  Simulation result;
  result.timeline.steps = options.steps;
  plan = {};  // millions of tasks: nothing is held twice
  result.timeline.start.assign(output.start.begin(), output.start.end());
  memory.forget(sizeof(Outcome), count * sizeof(double));
  result.timeline.end.assign(output.end.begin(), output.end.end());
  // From time 0 to the last end, as in replay().
  result.timeline.makespan_s = count == 0 ? 0 : *std::max_element(output.end.begin(), output.end.end());
  result.tasks = count;
  result.units = outcome.units;
  result.flows = outcome.flows;
  result.wall_s = outcome.wall_s;
  return result;
}

Simulation simulate(const TaskGraph& graph, const Cluster& cluster, const SimulationOptions& options) {
  return simulate(graph, cluster, durations_of(graph, cluster), options);
}

}  // namespace slipway
