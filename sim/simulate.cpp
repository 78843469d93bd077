#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <new>
#include <stdexcept>

#include "schedules/graph/parallel.h"
#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"
#include "sim/calendar.h"
#include "sim/compute.h"
#include "sim/isolate.h"
#include "sim/load_engine.h"

namespace slipway::sim {
namespace {

// The results of the simulating process; start and end times follow it in memory.
struct Outcome {
  std::atomic<std::uint64_t> done = 0;
  std::atomic<double> now = 0;
  std::uint64_t flows = 0, units = 0;
  double wall_s = 0;
};

std::size_t instances_of(const TaskGraph& graph, int steps) {
  if (steps < 1) throw std::invalid_argument(fmt::format("cannot simulate {} steps; at least 1 is needed", steps));
  if (graph.order.size() != graph.tasks.size())
    throw std::invalid_argument("the graph has no global order; call set_global_order first");
  const std::size_t count = graph.tasks.size() * static_cast<std::size_t>(steps);
  if (count >= std::numeric_limits<Instance>::max())
    throw std::invalid_argument(fmt::format("{} tasks × {} steps are more than the simulator numbers; use fewer steps",
                                            graph.tasks.size(), steps));
  return count;
}

// Chains that are simulated as one unit; none where speeds change (compute.h) or `wanted` is false.
Chains chains_of(const TaskGraph& graph, const Cluster& cluster, const TaskForms& forms, bool wanted) {
  return find_chains(graph, forms, !wanted || SharedCompute(cluster, rank_count(graph.step.layout)).any_changes());
}

// One simulation, from its process to its results.
class Run {
 public:
  Run(const TaskGraph& graph, int steps)
      : graph_(graph),
        steps_(steps),
        count_(instances_of(graph, steps)),
        memory_(sizeof(Outcome) + 2 * count_ * sizeof(double)),
        outcome_(*new (memory_.data()) Outcome),
        times_(reinterpret_cast<double*>(memory_.data() + sizeof(Outcome))) {}

  void simulate(const PricedCluster& cluster, const TaskForms& forms, const UnitGraph& units,
                const SimulationOptions& options) {
    const SimulationOutput output{start(),         end(),           &outcome_.done,  &outcome_.now,
                                  &outcome_.flows, &outcome_.units, &outcome_.wall_s};
    const auto tick = [&] {
      const std::uint64_t done = outcome_.done.load();
      if (options.interrupted && options.interrupted())
        throw SimulationInterrupted(partial_simulation(graph_, steps_, outcome_.now.load(), done, start(), end()));
      if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(count_));
    };
    RunEngine& run_engine = loaded_engine();  // here, once for all children
    run_isolated([&] { run_engine(graph_, cluster, forms, units, steps_, output); }, tick);
  }

  // Called once, because it releases memory: there are millions of tasks, and hardly anything is held twice.
  Simulation take() {
    Simulation result;
    result.timeline.steps = steps_;
    queued_in_parallel(2, count_, [&](std::size_t i) {
      const std::span<double> times = i == 0 ? start() : end();
      (i == 0 ? result.timeline.start : result.timeline.end).assign(times.begin(), times.end());
      // From time 0 to the last end, as in replay().
      if (i == 1 && count_ > 0) result.timeline.makespan_s = *std::max_element(times.begin(), times.end());
      memory_.forget(sizeof(Outcome) + i * count_ * sizeof(double), count_ * sizeof(double));
    });
    result.tasks = count_;
    result.units = outcome_.units;
    result.flows = outcome_.flows;
    result.wall_s = outcome_.wall_s;
    return result;
  }

 private:
  std::span<double> start() const { return {times_, count_}; }
  std::span<double> end() const { return {times_ + count_, count_}; }

  const TaskGraph& graph_;
  int steps_;
  std::size_t count_;
  SharedMemory memory_;
  Outcome& outcome_;
  double* times_;
};

}  // namespace

Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, const SimulationOptions& options) {
  Durations durations = durations_of(graph, cluster);
  durations.host = host_issue_of(graph, cluster);
  return simulate(graph, cluster, durations, options);
}

Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                    const SimulationOptions& options) {
  return std::move(simulate_each(graph, cluster, durations, options, {options.steps}).front());
}

Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, TaskForms forms,
                    const SimulationOptions& options) {
  Run run(graph, options.steps);
  {
    const Chains chains = chains_of(graph, cluster, forms, options.chains);
    run.simulate(cluster, forms, unit_graph_of(graph, chains), options);
  }
  forms = {};
  return run.take();
}

std::vector<Simulation> simulate_each(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                                      const SimulationOptions& options, const std::vector<int>& steps) {
  std::deque<Run> runs;  // refuse first what could not be simulated
  for (const int count : steps) runs.emplace_back(graph, count);
  {
    const TaskForms forms = task_forms(graph, cluster, durations, options.collectives);
    const Chains chains = chains_of(graph, cluster, forms, options.chains);
    const UnitGraph units = unit_graph_of(graph, chains);
    SimulationOptions silent = options;
    silent.progress = nullptr;
    each_in_parallel(runs.size(), graph.tasks.size(),
                     [&](std::size_t i) { runs[i].simulate(cluster, forms, units, i == 0 ? options : silent); });
  }
  std::vector<Simulation> results;
  for (Run& run : runs) results.push_back(run.take());
  return results;
}

}  // namespace slipway::sim
