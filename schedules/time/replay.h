// List replay: runs the graph in its global order with fixed durations and without contention. It is the independent
// reference for tests of the simulator, and what bounds and intervals rest on.
//
//   start = latest of: ends of predecessors, ends of the tasks before on all lanes of its members, issue by their hosts
//
// Guarded by tests/sim/replay_test.cpp, against the simulator, and tests/schedules/order_test.cpp.
#pragma once

#include <vector>

#include "schedules/graph/task_graph.h"
#include "schedules/time/durations.h"

namespace slipway::schedules {

struct Timeline {
  std::vector<double> start, end;  // per task instance: step * tasks + id
  int steps = 1;
  double makespan_s = 0;
};

// Requires graph.order. Every lane runs its tasks in order. A task starts when its predecessors are done, the
// lanes of all its members are free and their hosts have issued it.
Timeline replay(const TaskGraph& graph, const Durations& durations, int steps = 1);

}  // namespace slipway::schedules
