#include "sim/partial.h"

#include <algorithm>
#include <ranges>

namespace slipway::sim {

PartialSimulation partial_simulation(const TaskGraph& graph, int steps, double now, std::uint64_t done,
                                     std::span<const double> start, std::span<const double> end) {
  PartialSimulation partial{now, done, start.size(), steps, {}};
  const std::size_t tasks = graph.tasks.size();
  const int members = rank_count(graph.step.layout) / graph.step.layout.pipeline;
  for (int pipeline = 0; pipeline < graph.step.layout.pipeline; ++pipeline) {
    PartialSimulation::Position at{pipeline * members, "", 0};
    const auto lane = graph.compute_order[at.rank];
    const auto is_begun = [&](std::size_t i) {
      const std::size_t instance = i / lane.size() * tasks + lane[i % lane.size()];
      return (start[instance] > 0 || end[instance] > 0) && start[instance] <= now;
    };
    // A lane begins its tasks in order. Looking at all of them takes seconds: most times were never written to memory.
    const auto all = std::views::iota(std::size_t{0}, lane.size() * static_cast<std::size_t>(steps));
    const auto first_left = static_cast<std::size_t>(std::ranges::partition_point(all, is_begun) - all.begin());
    if (first_left > 0) {
      at.label = label_of(graph, lane[(first_left - 1) % lane.size()]);
      at.step = static_cast<int>((first_left - 1) / lane.size());
    }
    partial.positions.push_back(at);
  }
  return partial;
}

}  // namespace slipway::sim
