// The global order: list replay without contention. Compute lanes are in-order servers (the schedule's
// order); a communicator is one server shared by all its members' lanes, first ready first served.
#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>

#include "schedules/graph/lowering.h"

namespace slipway {
namespace {

struct Ready {
  double time;
  TaskId task;
  bool operator>(const Ready& other) const {
    return time != other.time ? time > other.time : task > other.task;
  }
};

}  // namespace

void set_global_order(TaskGraph& graph, const Durations& durations) {
  const std::size_t count = graph.tasks.size();
  constexpr auto nobody = std::numeric_limits<TaskId>::max();
  std::vector<std::uint32_t> waiting(count);
  std::vector<TaskId> next_on_lane(count, nobody);
  std::vector<double> ready_at(count, 0), start(count), communicator_free(graph.communicators.size(), 0);
  for (TaskId id = 0; id < count; ++id)
    waiting[id] = static_cast<std::uint32_t>(graph.predecessors[id].size());
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = graph.compute_order[rank];
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      next_on_lane[list[i]] = list[i + 1];
      ++waiting[list[i + 1]];
    }
  }
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
  for (TaskId id = 0; id < count; ++id) {
    if (waiting[id] == 0) queue.push({0, id});
  }
  std::vector<TaskId> prompt, delayed;  // that start when they are ready, that wait for their communicator
  prompt.reserve(count);
  while (!queue.empty()) {
    const auto [time, id] = queue.top();
    queue.pop();
    start[id] = time;
    const std::int32_t communicator = graph.tasks[id].communicator;
    if (communicator != none) {
      double& free = communicator_free[static_cast<std::size_t>(communicator)];
      start[id] = std::max(time, free);
      free = start[id] + durations[id];
    }
    (start[id] > time ? delayed : prompt).push_back(id);
    const double end = start[id] + durations[id];
    const auto release = [&](TaskId after) {
      ready_at[after] = std::max(ready_at[after], end);
      if (--waiting[after] == 0) queue.push({ready_at[after], after});
    };
    for (const TaskId after : graph.successors[id]) release(after);
    if (next_on_lane[id] != nobody) release(next_on_lane[id]);
  }
  const std::size_t popped = prompt.size() + delayed.size();
  if (popped != count) {
    throw std::logic_error("the schedule's order and the data dependencies contradict each other: " +
                           std::to_string(count - popped) + " tasks can never start");
  }
  // By start, among equal starts in popping order, which is topological. Prompt tasks were popped like that; a delayed
  // one was popped before all prompt ones of its start.
  const auto earlier = [&](TaskId a, TaskId b) { return start[a] < start[b]; };
  std::stable_sort(delayed.begin(), delayed.end(), earlier);
  graph.order.resize(count);
  std::merge(delayed.begin(), delayed.end(), prompt.begin(), prompt.end(), graph.order.begin(), earlier);
}

}  // namespace slipway
