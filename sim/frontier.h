// Which task instances may start. One counter per instance:
//
//   blockers = predecessors not yet done (carried ones from step 1 on)
//            + member lanes where it is not the head
//
// A task that ends takes one from each successor, and one from the next task of each of its lanes; whoever
// reaches zero is ready. Lanes continue with the next step's list when theirs is done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/program.h"
#include "sim/calendar.h"

namespace slipway {

struct Frontier {
  std::uint32_t tasks = 0;  // per step
  int steps = 0;
  const Rows* successors = nullptr;
  Rows carried;             // per task: tasks of the next step that wait for it
  std::vector<Lane> lanes;  // those that have tasks
  Rows lane_tasks;          // the same lists, flat
  Rows task_lanes;          // per task: the lanes of its members
  struct Head {
    std::uint32_t position = 0;
    std::uint32_t step = 0;
  };
  std::vector<Head> heads;              // per lane; step == steps: the lane is done
  std::vector<std::uint32_t> blockers;  // per instance

  TaskId task_of(Instance instance) const { return instance % tasks; }
};

// Appends to `ready` what may start at time 0. `graph` must outlive the frontier.
Frontier make_frontier(const TaskGraph& graph, int steps, std::vector<Instance>& ready);

// `instance` is done: appends to `ready` what may start now.
void advance(Frontier& frontier, Instance instance, std::vector<Instance>& ready);

// Why nothing goes on although tasks are left: a line per stuck lane with its head and what that waits for.
std::string describe_deadlock(const TaskGraph& graph, const Frontier& frontier);

}  // namespace slipway
