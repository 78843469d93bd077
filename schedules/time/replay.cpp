#include "schedules/time/replay.h"

#include <algorithm>

#include "schedules/time/host_issue.h"

namespace slipway::schedules {

Timeline replay(const TaskGraph& graph, const Durations& durations, int steps) {
  const std::size_t count = graph.tasks.size();
  Timeline timeline;
  timeline.steps = steps;
  timeline.start.resize(count * static_cast<std::size_t>(steps));
  timeline.end.resize(timeline.start.size());
  std::vector<double> rank_free(rank_count(graph.step.layout), 0);
  std::vector<double> communicator_free(graph.communicators.size(), 0);
  std::vector<double> carried(count, 0);  // earliest start that the previous step allows
  Hosts hosts(durations.host, steps);
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step) {
    const std::size_t base = step * count;
    for (const TaskId id : graph.order) {
      const Task& task = graph.tasks[id];
      double& free = task.communicator == none ? rank_free[task.rank] : communicator_free[task.communicator];
      double start = std::max(free, carried[id]);
      for (const TaskId before : graph.predecessors[id]) start = std::max(start, timeline.end[base + before]);
      const bool is_message = task.communicator != none;
      start = std::max(start, hosts.start(step, id, is_message));
      timeline.start[base + id] = start;
      hosts.begin(step, id, start);
      free = timeline.end[base + id] =
          is_message ? start + durations[id] : std::max(start + durations[id], hosts.end(step, id));
    }
    for (const auto& [before, after] : graph.carried) {
      carried[after] = std::max(carried[after], timeline.end[base + before]);
    }
  }
  for (const double end : timeline.end) timeline.makespan_s = std::max(timeline.makespan_s, end);
  return timeline;
}

}  // namespace slipway::schedules
