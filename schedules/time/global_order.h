// The global order: topological, by start in a list replay without contention, ties by id. Every lane is a projection of
// it (invariant I2), so projections never deadlock. It is computed once and stored in the graph.
//
//   compute lane     an in-order server: the schedule's order
//   communicator     one server that its members' lanes share: first ready, first served
//
// Guarded by tests/schedules/order_test.cpp and tests/schedules/check_test.cpp.
#pragma once

#include "schedules/graph/task_graph.h"
#include "schedules/time/durations.h"

namespace slipway::schedules {

// Sets graph.order. Throws std::logic_error where the schedule's order contradicts the data dependencies.
void set_global_order(TaskGraph& graph, const Durations& durations);

}  // namespace slipway::schedules
