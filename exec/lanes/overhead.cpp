#include "exec/lanes/overhead.h"

#include "exec/lanes/lanes.h"
#include "exec/process/clock.h"

namespace slipway::exec {

TaskGraph chain_of_nothing(int lanes, int tasks) {
  TaskGraph graph;
  graph.communicators.push_back({"tp", Axis::tensor, {0}});
  graph.works.push_back({});
  for (int i = 0; i < tasks; ++i) {
    Task task;
    const bool second_lane = lanes == 2 && i % 2 == 1;
    task.kind = second_lane ? TaskKind::collective : TaskKind::compute;
    task.rank = second_lane ? none : 0;
    task.communicator = second_lane ? 0 : none;
    graph.tasks.push_back(task);
    graph.order.push_back(static_cast<TaskId>(i));
    if (i > 0) graph.predecessors.values.push_back(static_cast<TaskId>(i - 1));
    if (i + 1 < tasks) graph.successors.values.push_back(static_cast<TaskId>(i + 1));
    for (Rows* rows : {&graph.predecessors, &graph.successors, &graph.inputs, &graph.outputs}) {
      rows->begin.push_back(static_cast<std::uint32_t>(rows->values.size()));
    }
  }
  return graph;
}

double task_overhead_seconds(int lanes, int tasks, DeviceQueue* device) {
  const TaskGraph graph = chain_of_nothing(lanes, tasks);
  LaneHooks hooks;
  hooks.device = device;
  hooks.perform = [](TaskId, int) {};
  LaneRunner(graph, 0, 1, hooks).run();  // makes what later runs reuse: a device's marks
  LaneRunner runner(graph, 0, 1, std::move(hooks));
  const Nanoseconds before = monotonic_ns();
  runner.run();
  return static_cast<double>(monotonic_ns() - before) * 1e-9 / tasks;
}

}  // namespace slipway::exec
