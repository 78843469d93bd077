// Neighbours of a lane that are shorter than a cell of time become one span. Its seconds are the sum of theirs, so
// nothing is lost but the place within the cell. The cell is the smallest at which the page holds all. Tasks of the critical
// path stay apart from others, and each stays alone unless it is much shorter than the cell.
// Guarded by tests/scenarios/timeline_view_test.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "scenarios/report/timeline_view.h"

namespace slipway::scenarios {

// At most `most` spans and parts of exposed communication, if the cell need not be longer than the view.
TimelineView reduced(TimelineView view, std::size_t most = 120'000);
// The curve in about 500 cells of time: the most of each, and its last.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, double seconds);

}  // namespace slipway::scenarios
