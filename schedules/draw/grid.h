// The rank × step picture of a schedule, and the whole graph as DOT.
//
//   rank 0 │ 0F0  0F1  0F2   .    .   0B0 ...     a row per rank, a column per unit of time;
//   rank 1 │  .   1F0  1F1   .  *1B0* 1F2 ...     *...* is the culprit of a violation
//
// Every action takes one column. The picture shows order and dependencies; durations are in a simulated timeline.
// An action starts when its rank is free, its own earlier passes are done and the neighbouring stage has delivered.
// A slice also waits for the slice before it; a backward waits for the slice after it. A pair waits for what both need.
// Actions that can never start (a missing or crossed dependency) follow in list order behind the point where
// everything stopped. The first of them on each row are `stuck`.
// Guarded by tests/schedules/grid_test.cpp (golden pictures that a person can check by hand).
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "schedules/draw/unit_times.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct GridOptions {
  std::vector<int> ranks;        // rows; empty = the pipeline of tensor, context and data rank 0
  std::vector<TaskId> culprits;  // marked; their rows are added
  int around = 0;                // > 0: shows only this many columns on both sides of the first culprit
};

// Draws a graph in the order of graph.order, or of task ids while there is no order.
std::string grid(const TaskGraph& graph, const GridOptions& options = {});

// Draws lists that are not lowered yet. `missing` holds (row, action) pairs that should exist; they are drawn at the
// end of the row as *2B0?*.
struct MissingAction {
  int row = 0;
  Action action;
};
std::string grid(const ActionLists& lists, std::span<const GridCell> culprits = {},
                 std::span<const MissingAction> missing = {}, int parts = 0);

// Writes DOT of the whole graph: a cluster per rank, transfers and collectives between them, lane order dotted.
// Equal graphs give equal bytes.
void write_dot(std::ostream& out, const TaskGraph& graph);

}  // namespace slipway::schedules
