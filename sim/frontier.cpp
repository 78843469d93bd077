#include "sim/frontier.h"

namespace slipway {
namespace {

// Rows from (row, value) pairs given by a function that calls its argument once per pair, in the same
// order both times it is asked.
template <class Visit>
Rows rows_of(std::size_t count, const Visit& visit) {
  Rows rows;
  rows.begin.assign(count + 1, 0);
  visit([&](std::uint32_t row, std::uint32_t) { ++rows.begin[row + 1]; });
  for (std::size_t row = 0; row < count; ++row) rows.begin[row + 1] += rows.begin[row];
  rows.values.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  visit([&](std::uint32_t row, std::uint32_t value) { rows.values[next[row]++] = value; });
  return rows;
}

void index_lanes(const TaskGraph& graph, Frontier& frontier) {
  frontier.lanes = lanes_of(graph);
  std::erase_if(frontier.lanes, [](const Lane& lane) { return lane.tasks.empty(); });
  for (const Lane& lane : frontier.lanes) {
    frontier.lane_tasks.values.insert(frontier.lane_tasks.values.end(), lane.tasks.begin(),
                                      lane.tasks.end());
    frontier.lane_tasks.begin.push_back(static_cast<std::uint32_t>(frontier.lane_tasks.values.size()));
  }
  frontier.task_lanes = rows_of(frontier.tasks, [&](const auto& pair) {
    for (std::uint32_t lane = 0; lane < frontier.lanes.size(); ++lane)
      for (const TaskId task : frontier.lanes[lane].tasks) pair(task, lane);
  });
}

void count_blockers(const TaskGraph& graph, Frontier& frontier) {
  std::vector<std::uint32_t> first(frontier.tasks);
  for (TaskId task = 0; task < frontier.tasks; ++task)
    first[task] =
        static_cast<std::uint32_t>(graph.predecessors[task].size() + frontier.task_lanes[task].size());
  std::vector<std::uint32_t> later = first;
  for (const auto& [from, to] : graph.carried) ++later[to];
  frontier.blockers = std::move(first);
  frontier.blockers.reserve(std::size_t{frontier.tasks} * static_cast<std::size_t>(frontier.steps));
  for (int step = 1; step < frontier.steps; ++step)
    frontier.blockers.insert(frontier.blockers.end(), later.begin(), later.end());
}

void unblock(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  if (--frontier.blockers[instance] == 0) ready.push_back(instance);
}

}  // namespace

Frontier make_frontier(const TaskGraph& graph, int steps, std::vector<Instance>& ready) {
  Frontier frontier;
  frontier.tasks = static_cast<std::uint32_t>(graph.tasks.size());
  frontier.steps = steps;
  frontier.successors = &graph.successors;
  frontier.carried = rows_of(frontier.tasks, [&](const auto& pair) {
    for (const auto& [from, to] : graph.carried) pair(from, to);
  });
  index_lanes(graph, frontier);
  count_blockers(graph, frontier);
  frontier.heads.resize(frontier.lanes.size());
  for (std::size_t lane = 0; lane < frontier.lanes.size(); ++lane)
    unblock(frontier, frontier.lane_tasks[lane].front(), ready);
  return frontier;
}

void advance(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  const TaskId task = frontier.task_of(instance);
  const Instance base = instance - task;
  for (const std::uint32_t lane : frontier.task_lanes[task]) {
    Frontier::Head& head = frontier.heads[lane];
    const auto tasks = frontier.lane_tasks[lane];
    if (++head.position == tasks.size()) {
      head.position = 0;
      if (++head.step == static_cast<std::uint32_t>(frontier.steps)) continue;
    }
    unblock(frontier, head.step * frontier.tasks + tasks[head.position], ready);
  }
  for (const TaskId next : (*frontier.successors)[task]) unblock(frontier, base + next, ready);
  if (base + frontier.tasks < frontier.blockers.size())
    for (const TaskId next : frontier.carried[task]) unblock(frontier, base + frontier.tasks + next, ready);
}

}  // namespace slipway
