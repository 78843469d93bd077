#include "sim/partial.h"

namespace slipway::sim {

PartialSimulation partial_simulation(const TaskGraph& graph, int steps, double now, std::uint64_t done,
                                     std::span<const double> start, std::span<const double> end) {
  PartialSimulation partial{now, done, start.size(), steps, {}};
  const std::size_t tasks = graph.tasks.size();
  const int members = rank_count(graph.step.layout) / graph.step.layout.pipeline;
  for (int pipeline = 0; pipeline < graph.step.layout.pipeline; ++pipeline) {
    PartialSimulation::Position at{pipeline * members, "", 0};
    std::int64_t last = none;
    const auto lane = graph.compute_order[at.rank];
    for (std::size_t i = 0; i < lane.size() * static_cast<std::size_t>(steps); ++i) {
      const std::size_t step = i / lane.size(), instance = step * tasks + lane[i % lane.size()];
      const bool begun = (start[instance] > 0 || end[instance] > 0) && start[instance] <= now;
      if (begun) last = lane[i % lane.size()], at.step = static_cast<int>(step);
    }
    if (last != none) at.label = label_of(graph, static_cast<TaskId>(last));
    partial.positions.push_back(at);
  }
  return partial;
}

}  // namespace slipway::sim
