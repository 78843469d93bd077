// Invariant I6 before there is a graph: are these action lists a complete step of this shape?
//
// Imported lists (schedule_csv.h) may lack an action, hold one twice, put a stage on the wrong rank, run a
// backward before its forward or wait for each other in a circle. The lowering would only stumble over
// these; here each is named and shown:
//
//   micro-batch 1 of stage 2 has no backward; add it (or I and W), 2B1 to the row of rank 2
//   rank 2 │  .   .  2F0 2B0 2F1 *2B1?*
//
// Guarded by tests/schedules/schedule_csv_test.cpp.
#pragma once

#include "schedules/draw/grid.h"

namespace slipway::schedules {

struct ActionDefect {
  std::string message;                 // what is wrong and what to do
  std::vector<GridCell> culprits;      // cells that are there
  std::vector<MissingAction> missing;  // actions that are not
};

// Empty = the lists are one step: per (stage, micro-batch, slice) one F, then one B, or one I and then one
// W, all of a stage on one row, and unit-time replay reaches the end. With copies of the model each
// micro-batch goes through the stages of one of them.
std::vector<ActionDefect> check_actions(const ActionLists& lists, const ScheduleShape& shape);

// Message and grid. `parts`: as unit_times takes it (schedules/draw/grid.h).
std::string describe(const ActionLists& lists, const ActionDefect& defect, int parts = 0);

}  // namespace slipway::schedules
