// The rank × step picture of a schedule, and the whole graph as DOT.
//
//   rank 0 │ 0F0  0F1  0F2   .    .   0B0 ...     a row per rank, a column per unit of time;
//   rank 1 │  .   1F0  1F1   .  *1B0* 1F2 ...     *...* is the culprit of a violation
//
// Every action takes one column, so the picture shows order and dependencies, not durations (those are in
// the timeline of a simulation). An action starts when its rank is free, its own earlier passes are done,
// the neighbouring stage has delivered and, of a sliced sequence, so has the slice before it (after it, for a
// backward). Actions that can never start (a missing or crossed
// dependency) follow in list order behind the point where everything stopped, and the heads are `stuck`.
// Guarded by tests/schedules/grid_test.cpp (golden pictures that a person can check by hand).
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// One action of a list: lists[row][index].
struct GridCell {
  int row = 0, index = 0;
  bool operator==(const GridCell&) const = default;
};

// The unit-time replay behind the picture.
struct UnitTimes {
  std::vector<std::vector<int>> column;  // like the lists
  int columns = 0;
  std::vector<GridCell> stuck;  // heads that could not start; empty when everything ran
};
// `parts`: stages of one copy of the model (Placement::parts); 0: all that the lists name are one copy.
UnitTimes unit_times(const ActionLists& lists, int parts = 0);

struct GridOptions {
  std::vector<int> ranks;        // rows; empty = the pipeline of tensor, context and data rank 0
  std::vector<TaskId> culprits;  // marked; their rows are added
  int around = 0;                // > 0: only so many columns on both sides of the first culprit
};

// The grid of a graph, in the order of graph.order (of ids when it has none yet).
std::string grid(const TaskGraph& graph, const GridOptions& options = {});

// The grid of lists that are not lowered yet. `missing` are (row, action) that should be there: shown at
// the end of the row as *2B0?*.
struct MissingAction {
  int row = 0;
  Action action;
};
std::string grid(const ActionLists& lists, std::span<const GridCell> culprits = {},
                 std::span<const MissingAction> missing = {}, int parts = 0);

// DOT of the whole graph: a cluster per rank, transfers and collectives between them, lane order dotted.
// Same graph, same bytes.
void write_dot(std::ostream& out, const TaskGraph& graph);

}  // namespace slipway::schedules
