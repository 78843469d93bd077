#include "schedules/graph/cut_window.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::schedules {
namespace {

bool is_own(const TaskGraph& graph, TaskId id, int steps) {
  const Task& task = graph.tasks[id];
  return graph.work(task).kind != WorkKind::bubble_work && task.step < steps;
}

// The steps' own tasks, and on compute lanes all before the last of them.
std::vector<bool> within(const TaskGraph& graph, int steps) {
  std::vector<bool> kept(graph.tasks.size(), false);
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    kept[id] = graph.tasks[id].communicator != none && is_own(graph, id, steps);
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto lane = graph.compute_order[rank];
    std::size_t end = lane.size();
    while (end > 0 && !is_own(graph, lane[end - 1], steps)) --end;
    for (std::size_t i = 0; i < end; ++i) kept[lane[i]] = true;
  }
  return kept;
}

void add_what_is_waited_for(const TaskGraph& graph, std::vector<bool>& kept) {
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id)
    if (kept[*id])
      for (const TaskId before : graph.predecessors[*id]) kept[before] = true;
}

}  // namespace

TaskGraph cut_after(const TaskGraph& window, int steps) {
  if (steps < 1 || steps >= window.window)
    throw std::invalid_argument("a window of " + std::to_string(window.window) + " steps cannot be cut after " +
                                std::to_string(steps));
  std::vector<bool> kept = within(window, steps);
  add_what_is_waited_for(window, kept);
  TaskGraph cut = window;
  std::erase_if(cut.order, [&](TaskId id) { return !kept[id]; });
  cut.compute_order = {};
  for (std::size_t rank = 0; rank < window.compute_order.size(); ++rank) {
    for (const TaskId id : window.compute_order[rank])
      if (kept[id]) cut.compute_order.values.push_back(id);
    cut.compute_order.begin.push_back(static_cast<std::uint32_t>(cut.compute_order.values.size()));
  }
  return cut;
}

}  // namespace slipway::schedules
