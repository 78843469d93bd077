// The part of the last window (schedules/lower/graph_builder.h) that still has to run when a training ends inside it.
//
//   window of 3, filled    F F B B O  a  F F B B O  a  F F B B O  b        a, b: work in the bubbles
//   cut after 2 steps      F F B B O  a  F F B B O
//
// Tasks behind a lane's last own task are dropped, except those that other lanes still wait for. So every step that
// runs sees what it sees in the whole window: its losses are equal to the last bit. Task ids stay those of the
// window; the order omits tasks. Guarded by tests/exec/execute_kfac_test.cpp and
// tests/exec/lanes_test.cpp.
#pragma once

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// Requires an ordered `window`. Throws std::invalid_argument unless 0 < steps < window.window.
TaskGraph cut_after(const TaskGraph& window, int steps);

}  // namespace slipway::schedules
