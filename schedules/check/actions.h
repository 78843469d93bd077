// Invariant I6 before there is a graph: the action lists are a complete step of this shape.
//
// Imported lists (schedule_csv.h) may lack an action, hold one twice, put a stage on the wrong rank, run a backward
// before its forward or wait for each other in a circle. The lowering would fail on these without a clear reason.
// Here each defect is named and drawn:
//
//   micro-batch 1 of stage 2 has no backward; add it (or I and W), 2B1 to the row of rank 2
//   rank 2 │  .   .  2F0 2B0 2F1 *2B1?*
//
// Guarded by tests/schedules/schedule_csv_test.cpp.
#pragma once

#include "schedules/draw/grid.h"

namespace slipway::schedules {

struct ActionDefect {
  std::string message;                 // the defect and its remedy
  std::vector<GridCell> culprits;      // cells that exist
  std::vector<MissingAction> missing;  // actions that do not exist
};

// Empty: the lists are one step. Each (stage, micro-batch, slice) has one F, then one B, or one I and then one W. All
// actions of a stage are on one row, and unit-time replay reaches the end. With copies of the model each micro-batch
// goes through the stages of one copy.
std::vector<ActionDefect> check_actions(const ActionLists& lists, const ScheduleShape& shape);

// Returns message and grid. `parts`: as in unit_times (schedules/draw/unit_times.h).
std::string describe(const ActionLists& lists, const ActionDefect& defect, int parts = 0);

}  // namespace slipway::schedules
