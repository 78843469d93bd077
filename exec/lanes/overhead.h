// The cost of the lane runtime itself: a graph whose tasks do nothing.
//
//   lanes = 1   C C C C ...                    one thread, no waiting
//   lanes = 2   C a C a ... (a on lane 2)      every task waits for the other lane's: a thread wakes per task
//
// Guarded by tests/exec/lanes_test.cpp; measured by tests/bench/executor_bench.cpp and `slipway-rank --measure`.
#pragma once

#include "exec/lanes/device_queue.h"
#include "schedules/graph/task_graph.h"

namespace slipway::exec {

// `tasks` tasks of rank 0, each a predecessor of the next, on one lane or alternating on two.
TaskGraph chain_of_nothing(int lanes, int tasks);
// Seconds per task of one run of that graph. With a device, the tasks start and mark nothing there too.
double task_overhead_seconds(int lanes, int tasks, DeviceQueue* device = nullptr);

}  // namespace slipway::exec
