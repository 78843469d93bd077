// A training need not end with a window (graph/window.h): what of its last one still has to run.
//
//   window of 3, filled    F F B B O  a  F F B B O  a  F F B B O  b        a, b: work in the bubbles
//   cut after 2 steps      F F B B O  a  F F B B O
//
// What lies behind a lane's last own task goes, but what somebody else's work still waits for. So every
// step that runs finds what it finds in the whole window: its losses are the same to the last bit. Task ids
// stay those of the window; the order leaves tasks out. Guarded by tests/exec/execute_kfac_test.cpp and
// tests/exec/lanes_test.cpp.
#pragma once

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// `window` is ordered; 0 < steps < window.window, else std::invalid_argument.
TaskGraph cut_after(const TaskGraph& window, int steps);

}  // namespace slipway::schedules
