// A graph's segment tasks in the order of what they belong to, for checks of actions (checks_passes.cpp).
// Guarded by tests/checks_passes_test.cpp.
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "schedules/program.h"

namespace slipway {

// One segment task, sortable by where it belongs.
struct SegmentTask {
  std::array<std::int32_t, 4> action;  // rank, stage, micro-batch, slice
  std::int32_t first_op, last_op;
  Pass pass;
  TaskId task;
  auto fields() const { return std::tuple(action, pass, first_op, last_op, task); }
};

// Of all ranks, by rank first; each sort is of one rank's tasks.
std::vector<SegmentTask> sorted_segments(const TaskGraph& graph);

}  // namespace slipway
