#include "schedules/time/global_order.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "schedules/time/ready_queue.h"

namespace slipway::schedules {
namespace {

// The state of a task in the replay until it runs.
struct Waiting {
  double ready_at = 0;
  std::uint32_t blockers = 0;  // predecessors, and the task before on its lane
  TaskId next_on_lane = std::numeric_limits<TaskId>::max();
  bool is_last() const { return next_on_lane == std::numeric_limits<TaskId>::max(); }
};

std::vector<Waiting> waiting_tasks(const TaskGraph& graph) {
  std::vector<Waiting> tasks(graph.tasks.size());
  for (TaskId id = 0; id < tasks.size(); ++id)
    tasks[id].blockers = static_cast<std::uint32_t>(graph.predecessors[id].size());
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = graph.compute_order[rank];
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      tasks[list[i]].next_on_lane = list[i + 1];
      ++tasks[list[i + 1]].blockers;
    }
  }
  return tasks;
}

}  // namespace

void set_global_order(TaskGraph& graph, const Durations& durations) {
  const std::size_t count = graph.tasks.size();
  std::vector<Waiting> waiting = waiting_tasks(graph);
  std::vector<double> start(count), communicator_free(graph.communicators.size(), 0);
  ReadyQueue queue;
  for (TaskId id = 0; id < count; ++id)
    if (waiting[id].blockers == 0) queue.push(0, id);
  std::vector<TaskId> prompt, delayed;  // start when they are ready; wait for their communicator
  prompt.reserve(count);
  while (!queue.empty()) {
    const auto [time, id] = queue.pop();
    start[id] = time;
    const std::int32_t communicator = graph.tasks[id].communicator;
    if (communicator != none) {
      double& free = communicator_free[communicator];
      start[id] = std::max(time, free);
      free = start[id] + durations[id];
    }
    (start[id] > time ? delayed : prompt).push_back(id);
    const double end = start[id] + durations[id];
    const auto release = [&](TaskId after) {
      Waiting& task = waiting[after];
      task.ready_at = std::max(task.ready_at, end);
      if (--task.blockers == 0) queue.push(task.ready_at, after);
    };
    for (const TaskId after : graph.successors[id]) release(after);
    if (!waiting[id].is_last()) release(waiting[id].next_on_lane);
  }
  const std::size_t popped = prompt.size() + delayed.size();
  if (popped != count) {
    throw std::logic_error("the schedule's order and the data dependencies contradict each other: " +
                           std::to_string(count - popped) + " tasks can never start");
  }
  // By start, among equal starts in popping order, which is topological. Prompt tasks were popped in that order; a
  // delayed one was popped before all prompt ones of its start.
  const auto earlier = [&](TaskId a, TaskId b) { return start[a] < start[b]; };
  std::stable_sort(delayed.begin(), delayed.end(), earlier);
  graph.order.resize(count);
  std::merge(delayed.begin(), delayed.end(), prompt.begin(), prompt.end(), graph.order.begin(), earlier);
}

}  // namespace slipway::schedules
