#include "schedules/graph/replay.h"

#include <algorithm>

namespace slipway {

Timeline replay(const TaskGraph& graph, const Durations& durations, int steps) {
  const std::size_t count = graph.tasks.size();
  Timeline timeline;
  timeline.steps = steps;
  timeline.start.resize(count * static_cast<std::size_t>(steps));
  timeline.end.resize(timeline.start.size());
  std::vector<double> rank_free(static_cast<std::size_t>(rank_count(graph.layout)), 0);
  std::vector<double> communicator_free(graph.communicators.size(), 0);
  std::vector<double> carried(count, 0);  // earliest start that the previous step allows
  for (std::size_t base = 0; base < timeline.start.size(); base += count) {
    for (const TaskId id : graph.order) {
      const Task& task = graph.tasks[id];
      double& free = task.communicator == none
                         ? rank_free[static_cast<std::size_t>(task.rank)]
                         : communicator_free[static_cast<std::size_t>(task.communicator)];
      double start = std::max(free, carried[id]);
      for (const TaskId before : graph.predecessors[id])
        start = std::max(start, timeline.end[base + before]);
      timeline.start[base + id] = start;
      free = timeline.end[base + id] = start + durations[id];
    }
    for (const auto& [before, after] : graph.carried) {
      carried[after] = std::max(carried[after], timeline.end[base + before]);
    }
  }
  for (const double end : timeline.end) timeline.makespan_s = std::max(timeline.makespan_s, end);
  return timeline;
}

}  // namespace slipway
