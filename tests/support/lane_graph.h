// Graphs of one rank, written by hand, for the lane runtime.
#pragma once

#include <algorithm>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::test {

// A graph of rank 0 by hand: each task names its communicator (none = compute lane) and its predecessors.
struct HandTask {
  int communicator = none;
  std::vector<TaskId> after;
  std::vector<BufferId> reads, writes;
};

inline TaskGraph graph_of(const std::vector<HandTask>& tasks, std::size_t communicators = 1) {
  TaskGraph graph;
  for (std::size_t i = 0; i < communicators; ++i) graph.communicators.push_back({"tp", Axis::tensor, {0}});
  graph.works.push_back({});
  const auto add_row = [](Rows& rows, const std::vector<std::uint32_t>& values) {
    rows.values.insert(rows.values.end(), values.begin(), values.end());
    rows.begin.push_back(static_cast<std::uint32_t>(rows.values.size()));
  };
  std::size_t buffers = 0;
  for (const HandTask& hand : tasks) {
    Task task;
    task.kind = hand.communicator == none ? TaskKind::compute : TaskKind::collective;
    task.rank = hand.communicator == none ? 0 : none;
    task.communicator = hand.communicator;
    graph.order.push_back(static_cast<TaskId>(graph.tasks.size()));
    graph.tasks.push_back(task);
    add_row(graph.predecessors, hand.after);
    add_row(graph.successors, {});
    add_row(graph.inputs, hand.reads);
    add_row(graph.outputs, hand.writes);
    for (const auto& list : {hand.reads, hand.writes}) {
      for (const BufferId buffer : list) buffers = std::max<std::size_t>(buffers, buffer + 1);
    }
  }
  graph.buffers.resize(buffers);
  return graph;
}

}  // namespace slipway::test
