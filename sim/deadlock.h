// The message of a simulated deadlock: the head of each lane, what it waits for, and where that is in the schedule's
// grid. Guarded by tests/sim/network_test.cpp.
#pragma once

#include <string>

#include "sim/frontier.h"

namespace slipway::sim {

// The reason of a deadlock: a line per stuck lane with its head and what that waits for.
std::string describe_deadlock(const TaskGraph& graph, const Frontier& frontier);

}  // namespace slipway::sim
