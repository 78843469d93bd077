// The unit instances that may start; a unit is a task or a chain of them (chains.h). There is one counter per instance:
//
//   blockers = units that it waits for, not yet done (carried ones from step 1 on)
//            + member lanes where it is not the head
//
// A unit that ends takes one from each successor, and one from the next unit of each of its lanes. A unit at zero is
// ready. Lanes continue with the next step's list when theirs is done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/calendar.h"
#include "sim/chains.h"

namespace slipway::sim {

// The units of one step. They do not depend on the number of steps, so all simulations of a graph share them.
struct UnitGraph {
  std::uint32_t count = 0;
  const Chains* chains = nullptr;
  Rows successors;          // units; one entry for each pair of tasks
  Rows carried;             // per unit: units of the next step that wait for it
  std::vector<Lane> lanes;  // those that have tasks
  Rows of_lane;             // per lane
  Rows lanes_of;            // per unit: the lanes of its members
};

// `chains` must outlive it.
UnitGraph unit_graph_of(const TaskGraph& graph, const Chains& chains);

struct Frontier {
  const UnitGraph* units = nullptr;
  int steps = 0;
  struct Head {
    std::uint32_t position = 0;
    std::uint32_t step = 0;
  };
  std::vector<Head> heads;              // per lane; step == steps: the lane is done
  std::vector<std::uint32_t> blockers;  // per instance

  std::uint32_t unit_of(Instance instance) const { return instance % units->count; }
  std::span<const TaskId> tasks_of(Instance instance) const { return units->chains->tasks[unit_of(instance)]; }
  TaskId first_task(Instance instance) const { return tasks_of(instance).front(); }
};

// Appends the instances that may start at time 0 to `ready`. `units` must outlive the frontier.
Frontier make_frontier(const UnitGraph& units, int steps, std::vector<Instance>& ready);

// `instance` is done: appends the instances that may start now to `ready`.
void advance(Frontier& frontier, Instance instance, std::vector<Instance>& ready);

}  // namespace slipway::sim
