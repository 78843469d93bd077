// The cores of a rank on this machine: its own, when there are enough.
//
//   4 cores, 2 ranks:  rank 0 → cores 0 1     rank 1 → cores 2 3     4 cores, 5 ranks: no binding
//
// A rank is several threads that take turns: a compute lane, communication lanes, the transport's own thread.
// Unbound, a thread that wakes up often lands on another rank's core. It stops that rank's compute, and the whole group
// waits for it.
// Guarded by tests/scenarios/launch_test.cpp.
#pragma once

#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

// The cores that this process may use, in ascending order.
std::vector<int> usable_cores();

// The rank's share of `usable`: equal, consecutive, disjoint between ranks. Empty (no binding) with more ranks than
// cores.
std::vector<int> cores_of_rank(const std::vector<int>& usable, int rank, int ranks);

}  // namespace slipway::scenarios
