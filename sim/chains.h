// Runs of tasks that the simulator treats as one, because nobody else can see their middle.
//
//   rank 0  ─┤ a ├─┐     ┌─┤ b ├─┐     ┌─┤ c ├─┐     ┌─┤ d ├─        a link: a collective of known duration
//   rank 1  ─┤ a ├─┤ k1  ├─┤ b ├─┤ k2  ├─┤ c ├─┤ k3  ├─┤ d ├─        between two tasks of each member that are
//                  └─────────── one chain ───────────┘               neighbours on its compute lane
//
// A chain begins when its first collective does and ends with its last. Links are joined if each task between
// them waits for nothing but the chain and what its own rank did before, and nobody else waits for it: later
// tasks of its own rank at most, which the lane keeps waiting anyway. So all dates inside a chain follow from its
// beginning by the same additions that the event loop would make: the result is the same to the last bit. Made
// for tensor groups, whose collectives are most tasks of a step. (Flows end where SimGrid's clock, added up event by event, has them.)
//
// Between two links there may be collectives of the same members beside their tasks, as the gathers for weight gradients
// under sequence parallelism: they wait for tasks of the members, and only later tasks of theirs wait for them. What the
// order of the communicator puts before a chain is over when the chain begins.
//
//   ranks  ─┤k1├─┤   b   ├─┤k2├─┤   c   ├─┤k3├─      x: waits for what comes before b, c waits for it
//                ├ x ├
//
// A unit is a chain or a task of its own. Guarded by tests/sim/chains_test.cpp.
#pragma once

#include "sim/fidelity.h"

namespace slipway::sim {

struct Chains {
  std::vector<std::uint32_t> unit_of;  // per task
  Rows tasks;                          // per unit; of a chain in the order in which they run, rank by rank
  bool is_chain(std::uint32_t unit) const { return tasks[unit].size() > 1; }
};

// `speeds_vary`: durations are no constants, so every task is a unit of its own.
Chains find_chains(const TaskGraph& graph, const SimulationPlan& plan, bool speeds_vary);

}  // namespace slipway::sim
