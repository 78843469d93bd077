// A window with bubble work in it. schedules/fill places the work by prices. A bundle says what it is and where it went,
// so that ranks, which have no prices, make the same graph.
//
//   step    F F B B O                              lower
//   window  F F B B O  F F B B O                   window_of (schedules/lower/graph_builder.h)
//   filled  F F B B O  F F B B O │ a a b           works, groups, tasks and buffers of bubble work follow the steps' own
//
// The steps' own tasks wait for nothing of it but by the order of their lane.
// Guarded by tests/schedules/fill_test.cpp and tests/schedules/bundle_test.cpp.
#pragma once

#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct PlacedTask {
  Task task;
  std::vector<BufferId> reads;
  std::vector<TaskId> after;  // its predecessors
};

// Every id is one of the filled graph.
struct PlacedBubbleWork {
  std::vector<Work> works;
  std::vector<Communicator> communicators;
  std::vector<PlacedTask> tasks;
  std::vector<Buffer> buffers;  // each has a writer: one of `tasks`, or of the window
  std::vector<double> weights;  // per rank: StaticBytes::weights with what the bubble work holds; empty: as they are
};

// Adds all but compute_order, which has its places. Removes the order.
void add_bubble_work(TaskGraph& window, const PlacedBubbleWork& placed);
// What was added to `window`.
PlacedBubbleWork bubble_work_in(const TaskGraph& filled, const TaskGraph& window);

}  // namespace slipway::schedules
