// The unit-time replay behind the picture of a schedule (grid.h): every action takes one column.
// Guarded by tests/schedules/grid_test.cpp.
#pragma once

#include <vector>

#include "schedules/step/action.h"

namespace slipway::schedules {

// One action of a list: lists[row][index].
struct GridCell {
  int row = 0, index = 0;
  bool operator==(const GridCell&) const = default;
};

struct UnitTimes {
  std::vector<std::vector<int>> column;  // like the lists
  int columns = 0;
  std::vector<GridCell> stuck;  // first action of each row that could not start; empty when everything ran
};
// `parts`: stages of one copy of the model (Placement::parts); 0: the lists hold one copy.
UnitTimes unit_times(const ActionLists& lists, int parts = 0);

}  // namespace slipway::schedules
