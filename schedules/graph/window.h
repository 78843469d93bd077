// Several steps as one graph: what repeats only every k steps (a refresh of K-FAC's inverses) is then an
// ordinary task of it, and what is kept from one step for a later one an ordinary buffer.
//
//   step graph   F F B B O          window of 3   F F B B O  F F B B O  F F B B O       Task::step 0, 1, 2
//   carried:     O ─► next F                      └────────┴─►┘ └──────┴─►┘ ... carried to the next window
//
// Task s·n + t is task t of step s (n tasks a step), and so for buffers. Engines run a window as they run a
// step; what they call a step is then `window` steps long. Guarded by tests/window_test.cpp.
#pragma once

#include "schedules/graph/lowering.h"

namespace slipway {

// `step` has an order (it is not used) or none; the result has none. Throws std::invalid_argument for steps
// < 1 and for a graph that is a window already.
TaskGraph window_of(const TaskGraph& step, int steps);

}  // namespace slipway
