#include "schedules/time/order.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "schedules/lower/lowering.h"

namespace slipway::schedules {

Hosts::Hosts(const HostIssue& issue, int steps) : issue_(issue) {
  if (issue.empty()) return;
  constexpr double unknown = -1;
  const std::size_t ranks = issue.hosts.size();
  const auto count = static_cast<std::size_t>(steps * issue.synchronisations + 1);
  dates_.assign(count * ranks, unknown);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    dates_[rank] = 0;
    if (issue.hosts[rank].waits) continue;
    for (std::size_t at = 1; at < count; ++at)  // step after step without a stop
      dates_[at * ranks + rank] =
          static_cast<double>(std::max(1, static_cast<int>(at) / issue.synchronisations) - 1) * issue.hosts[rank].tail;
  }
}

std::int32_t Hosts::awaited(std::size_t step, TaskId task) const {
  if (!empty())
    for (const HostIssue::Share& share : issue_.of(task))
      if (dates_[place_of(step, share.rank, share.since)] < 0) return share.rank;
  return none;
}

std::int32_t Hosts::begin(std::size_t step, TaskId task, double date) {
  if (!empty())
    for (const HostIssue::Share& share : issue_.of(task))
      if (share.waits) return dates_[place_of(step, share.rank, share.since + 1)] = date, share.rank;
  return none;
}

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

// The global order: list replay without contention. Compute lanes are in-order servers (the schedule's order). A
// communicator is one server shared by all its members' lanes, first ready first served.

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
