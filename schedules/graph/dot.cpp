#include <array>
#include <ostream>

#include "schedules/graph/grid.h"

namespace slipway {
namespace {

// Fill colours by kind of task; named X11 colours, so that the file reads well.
const char* colour_of(const TaskGraph& graph, const Task& task) {
  if (task.kind == TaskKind::transfer) return "gold";
  if (task.kind == TaskKind::collective) return "orange";
  if (task.kind == TaskKind::optimizer) return "plum";
  constexpr std::array<const char*, 6> by_pass{"white",     "lightblue", "palegreen",
                                               "palegreen", "khaki",     "lightcyan"};
  return by_pass[static_cast<std::size_t>(graph.works[static_cast<std::size_t>(task.work)].pass)];
}

void write_node(std::ostream& out, const TaskGraph& graph, TaskId id, const char* indent) {
  const Task& task = graph.tasks[id];
  out << indent << 't' << id << " [label=\"" << label_of(graph, id) << '"';
  if (task.rank == none) {
    out << ", shape=" << (task.kind == TaskKind::transfer ? "cds" : "ellipse") << ", tooltip=\"ranks";
    for (const std::int32_t rank : members_of(graph, id)) out << ' ' << rank;
    out << '"';
  }
  out << ", fillcolor=" << colour_of(graph, task) << "];\n";
}

std::vector<std::vector<TaskId>> tasks_by_rank(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> tasks(static_cast<std::size_t>(rank_count(graph.layout)));
  const auto add = [&](TaskId id) {
    const std::int32_t rank = graph.tasks[id].rank;
    if (rank != none) tasks[static_cast<std::size_t>(rank)].push_back(id);
  };
  if (graph.order.size() == graph.tasks.size()) {
    for (const TaskId id : graph.order) add(id);
  } else {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) add(id);
  }
  return tasks;
}

}  // namespace

void write_dot(std::ostream& out, const TaskGraph& graph) {
  out << "digraph slipway {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"monospace\"];\n";
  const auto by_rank = tasks_by_rank(graph);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    out << "  subgraph cluster_" << rank << " {\n    label=\"rank " << rank << "\";\n";
    for (const TaskId id : by_rank[rank]) write_node(out, graph, id, "    ");
    out << "  }\n";
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.tasks[id].rank == none) write_node(out, graph, id, "  ");
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId next : graph.successors[id]) out << "  t" << id << " -> t" << next << ";\n";
  }
  for (const auto& lane : by_rank) {
    for (std::size_t i = 1; i < lane.size(); ++i) {
      out << "  t" << lane[i - 1] << " -> t" << lane[i]
          << " [style=dotted, color=grey, constraint=false];\n";
    }
  }
  out << "}\n";
}

}  // namespace slipway
