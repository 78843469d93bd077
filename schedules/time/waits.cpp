#include "schedules/time/waits.h"

#include <algorithm>

#include "schedules/lower/graph_builder.h"

namespace slipway::schedules {

Waits::Waits(const TaskGraph& graph)
    : graph_(graph),
      on_lane_(graph.tasks.size(), nothing),
      last_on_lane_(static_cast<std::size_t>(rank_count(graph.step.layout)) + graph.communicators.size(), nothing) {
  for (const TaskId id : graph.order) {
    TaskId& last = last_on_lane_[lane_of(id)];
    on_lane_[id] = last;
    last = id;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto& [before, after] : graph.carried) pairs.emplace_back(after, before);
  carried_.begin.assign(graph.tasks.size() + 1, 0);
  carried_ = with_added(carried_, pairs);
}

std::size_t Waits::lane_of(TaskId task) const {
  const Task& of = graph_.tasks[task];
  return of.communicator == none
             ? static_cast<std::size_t>(of.rank)
             : static_cast<std::size_t>(rank_count(graph_.step.layout)) + static_cast<std::size_t>(of.communicator);
}

std::vector<CauseOfWait> causes_of_waits(const TaskGraph& graph, const Timeline& timeline, std::size_t step) {
  const Waits waits(graph);
  const std::size_t count = graph.tasks.size();
  std::vector<CauseOfWait> causes(count);
  for (TaskId task = 0; task < count; ++task) {
    double latest = 0;
    waits.each(step, task, [&](std::size_t in, TaskId before, Waits::Reason reason) {
      const double end = timeline.end[in * count + before];
      if (causes[task].exists && end <= latest) return;
      latest = end, causes[task] = {before, reason, true};
    });
  }
  return causes;
}

}  // namespace slipway::schedules
