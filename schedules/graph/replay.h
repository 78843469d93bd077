// List replay: runs the graph in its global order with fixed durations, no contention. The independent
// reference that the simulator is tested against, and the source of the global order itself.
#pragma once

#include "schedules/graph/lowering.h"

namespace slipway {

struct Timeline {
  std::vector<double> start, end;  // per task instance: step * tasks + id
  int steps = 1;
  double makespan_s = 0;
};

// Requires graph.order. Every lane runs its tasks in order; a task starts when its predecessors are done
// and all of its members' lanes are free.
Timeline replay(const TaskGraph& graph, const Durations& durations, int steps = 1);

}  // namespace slipway
