#include "schedules/bundle/step_program.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "schedules/bundle/verify.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {
namespace {

void require_none(const std::string& defect) {
  if (!defect.empty()) throw std::invalid_argument(defect);
}

// Of many layers a pass is thousands of tasks, so a short file could ask for gigabytes: the lowering ends at the tasks
// that the order names.
TaskGraph lowered_window(const StepProgram& program) {
  const std::size_t own = program.order.size() - program.bubble_work.tasks.size();
  try {
    return window_of(lower(program.step, {}, own / static_cast<std::size_t>(program.window)), program.window);
  } catch (const std::length_error&) {
    throw std::invalid_argument("tasks are missing");
  }
}

// Each rank's compute tasks in the global order.
Rows compute_order_of(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> lists(graph.compute_order.size());
  for (const TaskId id : graph.order)
    if (graph.tasks[id].communicator == none) lists[static_cast<std::size_t>(graph.tasks[id].rank)].push_back(id);
  Rows rows;
  for (const auto& list : lists) {
    rows.values.insert(rows.values.end(), list.begin(), list.end());
    rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
  }
  return rows;
}

}  // namespace

StepProgram step_program_of(const TaskGraph& graph) {
  StepProgram program{graph.step, graph.window, {}, graph.order, 0};
  if (has_bubble_work(graph.step))
    program.bubble_work = bubble_work_in(graph, window_of(lower(graph.step), graph.window));
  return program;
}

TaskGraph graph_of(const StepProgram& program) {
  require_none(step_defect(program));
  TaskGraph graph = lowered_window(program);
  const std::size_t own = graph.tasks.size();
  if (has_bubble_work(program.step)) {
    require_none(bubble_work_defect(program.bubble_work, graph));
    add_bubble_work(graph, program.bubble_work);
  }
  graph.order = program.order;
  require_none(order_defect(graph));
  const Rows lowered = std::exchange(graph.compute_order, compute_order_of(graph));
  require_none(compute_order_defect(graph, lowered, own));
  return graph;
}

}  // namespace slipway::schedules
