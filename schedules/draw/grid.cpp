#include "schedules/draw/grid.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

namespace slipway::schedules {

namespace {

std::string text_of(const Action& action) {
  std::string text = std::to_string(action.stage) + letter_of(action.pass) + std::to_string(action.micro_batch);
  if (action.slice > 0) text += "/" + std::to_string(action.slice);
  return text;
}

// A row to be printed: a name, cells at columns, and notes behind.
struct Row {
  std::string name;
  std::vector<Action> actions;
  std::vector<int> column;
  std::vector<bool> marked;
  std::string notes;
};

struct Window {
  int first = 0, end = 0, columns = 0;
};

Window window_of(const std::vector<Row>& rows, int around) {
  int columns = 0, at = std::numeric_limits<int>::max();
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.actions.size(); ++i) {
      columns = std::max(columns, row.column[i] + 1);
      if (row.marked[i]) at = std::min(at, row.column[i]);
    }
  }
  if (around <= 0) return {0, columns, columns};
  // No column is marked in the pipeline, so the culprit belongs to the end of the step.
  if (at == std::numeric_limits<int>::max()) at = columns - 1;
  return {std::max(0, at - around), std::min(columns, at + around + 1), columns};
}

std::vector<std::string> cells_of(const Row& row, Window window) {
  std::vector<std::string> cells(window.end - window.first, ".");
  for (std::size_t i = 0; i < row.actions.size(); ++i) {
    if (row.column[i] < window.first || row.column[i] >= window.end) continue;
    const std::string text = text_of(row.actions[i]);
    cells[row.column[i] - window.first] = row.marked[i] ? "*" + text + "*" : text;
  }
  return cells;
}

std::string centred(const std::string& text, std::size_t width) {
  const std::size_t gap = width - std::min(width, text.size());
  return std::string(gap / 2, ' ') + text + std::string(gap - gap / 2, ' ');
}

std::string print(const std::vector<Row>& rows, int around) {
  const Window window = window_of(rows, around);
  std::vector<std::vector<std::string>> cells;
  std::size_t name_width = 0, width = 1;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    for (const std::string& cell : cells.emplace_back(cells_of(row, window))) width = std::max(width, cell.size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = rows[r].name + std::string(name_width - rows[r].name.size(), ' ') + " │";
    if (window.first > 0) line += " …";
    for (const std::string& cell : cells[r]) line += " " + centred(cell, width);
    if (window.end < window.columns) line += " …";
    line += rows[r].notes;
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

Coordinates replica_of(const Layout& layout, int rank) {
  Coordinates at = coordinates_of(layout, rank);
  at.pipeline = 0;
  return at;
}

// The ranks to show, ascending.
std::vector<int> shown_ranks(const TaskGraph& graph, const GridOptions& options) {
  std::vector<int> ranks = options.ranks;
  Coordinates at;
  if (!options.culprits.empty()) {
    const auto members = members_of(graph, options.culprits.front());
    if (!members.empty()) at = replica_of(graph.step.layout, members.front());
  }
  if (ranks.empty()) {
    for (at.pipeline = 0; at.pipeline < graph.step.layout.pipeline; ++at.pipeline)
      ranks.push_back(rank_of(graph.step.layout, at));
  }
  constexpr std::size_t most_rows = 64;  // a collective over the world would add every rank
  for (const TaskId culprit : options.culprits) {
    for (const std::int32_t rank : members_of(graph, culprit)) {
      if (ranks.size() < most_rows && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Action action_of(const TaskGraph& graph, const Task& task) {
  const Work& work = graph.work(task);
  return {work.pass, work.stage, task.micro_batch, task.slice};
}

using ActionKey = std::tuple<int, int, int, int>;
ActionKey key_of(const Action& action) {
  return {static_cast<int>(action.pass), action.stage, action.micro_batch, action.slice};
}

// Actions of the wanted ranks in global order. A run of segments collapses to its action, which stands where its first
// segment does.
std::map<int, std::vector<Action>> actions_of(const TaskGraph& graph, const std::vector<bool>& wanted) {
  std::map<int, std::vector<Action>> lists;
  std::map<int, std::set<ActionKey>> seen;
  const auto add = [&](TaskId id) {
    const Task& task = graph.tasks[id];
    if (task.kind != TaskKind::compute || task.micro_batch == none || task.rank < 0) return;
    if (task.step > 0) return;  // a window shows its first step; the others are equal
    if (static_cast<std::size_t>(task.rank) >= wanted.size() || !wanted[task.rank]) return;
    const Action action = action_of(graph, task);
    if (seen[task.rank].insert(key_of(action)).second) lists[task.rank].push_back(action);
  };
  if (graph.order.size() == graph.tasks.size()) {
    for (const TaskId id : graph.order) add(id);
  } else {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) add(id);
  }
  return lists;
}

// Replays each row's pipeline whole, even where only some of its ranks are shown.
std::vector<Row> rows_of(const TaskGraph& graph, const std::vector<int>& ranks) {
  std::map<int, std::vector<int>> pipelines;  // rank of the first stage → shown ranks
  std::vector<bool> wanted(rank_count(graph.step.layout), false);
  for (const int rank : ranks) {
    Coordinates at = replica_of(graph.step.layout, rank);
    pipelines[rank_of(graph.step.layout, at)].push_back(rank);
    for (; at.pipeline < graph.step.layout.pipeline; ++at.pipeline) {
      wanted[rank_of(graph.step.layout, at)] = true;
    }
  }
  auto lists = actions_of(graph, wanted);
  std::vector<Row> rows;
  for (const auto& [first, shown] : pipelines) {
    ActionLists pipeline;
    Coordinates at = coordinates_of(graph.step.layout, first);
    for (; at.pipeline < graph.step.layout.pipeline; ++at.pipeline)
      pipeline.push_back(lists[rank_of(graph.step.layout, at)]);
    const UnitTimes times = unit_times(pipeline, graph.placement.parts());
    for (const int rank : shown) {
      const auto p = static_cast<std::size_t>(coordinates_of(graph.step.layout, rank).pipeline);
      rows.push_back({"rank " + std::to_string(rank), pipeline[p], times.column[p],
                      std::vector<bool>(pipeline[p].size(), false), ""});
    }
  }
  return rows;
}

// Marks a culprit that has a cell, or whose action has one (its transfer, its collective). Any other culprit is noted
// behind the row.
void mark(const TaskGraph& graph, TaskId culprit, Row& row) {
  const auto cell = std::find(row.actions.begin(), row.actions.end(), action_of(graph, graph.tasks[culprit]));
  if (cell != row.actions.end()) {
    row.marked[cell - row.actions.begin()] = true;
  } else {
    row.notes += " *" + label_of(graph, culprit) + "*";
  }
}

// Fill colours by kind of task; named X11 colours, so that the file reads well.
const char* colour_of(const TaskGraph& graph, const Task& task) {
  if (task.kind == TaskKind::transfer) return "gold";
  if (task.kind == TaskKind::collective) return "orange";
  if (task.kind == TaskKind::optimizer) return "plum";
  constexpr std::array<const char*, 6> by_pass{"white", "lightblue", "palegreen", "palegreen", "khaki", "lightcyan"};
  return by_pass[static_cast<std::size_t>(graph.work(task).pass)];
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
  std::vector<std::vector<TaskId>> tasks(rank_count(graph.step.layout));
  const auto add = [&](TaskId id) {
    const std::int32_t rank = graph.tasks[id].rank;
    if (rank != none) tasks[rank].push_back(id);
  };
  if (graph.order.size() == graph.tasks.size()) {
    for (const TaskId id : graph.order) add(id);
  } else {
    for (TaskId id = 0; id < graph.tasks.size(); ++id) add(id);
  }
  return tasks;
}

}  // namespace

std::string grid(const TaskGraph& graph, const GridOptions& options) {
  std::vector<Row> rows = rows_of(graph, shown_ranks(graph, options));
  for (const TaskId culprit : options.culprits) {
    for (const std::int32_t rank : members_of(graph, culprit)) {
      const std::string name = "rank " + std::to_string(rank);
      for (Row& row : rows) {
        if (row.name == name) mark(graph, culprit, row);
      }
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);  // by number
  });
  return print(rows, options.around);
}

std::string grid(const ActionLists& lists, std::span<const GridCell> culprits, std::span<const MissingAction> missing,
                 int parts) {
  const UnitTimes times = unit_times(lists, parts);
  std::vector<Row> rows;
  for (std::size_t r = 0; r < lists.size(); ++r) {
    rows.push_back(
        {"rank " + std::to_string(r), lists[r], times.column[r], std::vector<bool>(lists[r].size(), false), ""});
  }
  for (const GridCell& cell : culprits) {
    rows[cell.row].marked[cell.index] = true;
  }
  for (const MissingAction& gap : missing) {
    if (gap.row < 0 || static_cast<std::size_t>(gap.row) >= rows.size()) continue;
    rows[gap.row].notes += " *" + text_of(gap.action) + "?*";
  }
  return print(rows, 0);
}

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
      out << "  t" << lane[i - 1] << " -> t" << lane[i] << " [style=dotted, color=grey, constraint=false];\n";
    }
  }
  out << "}\n";
}

}  // namespace slipway::schedules
