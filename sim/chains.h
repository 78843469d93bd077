// Runs of tasks that the simulator treats as one, because no other task can see their middle.
//
//   rank 0  ─┤ a ├─┐     ┌─┤ b ├─┐     ┌─┤ c ├─┐     ┌─┤ d ├─        a link: a collective of known duration
//   rank 1  ─┤ a ├─┤ k1  ├─┤ b ├─┤ k2  ├─┤ c ├─┤ k3  ├─┤ d ├─        between two tasks of each member that are
//                  └─────────── one chain ───────────┘               neighbours on its compute lane
//
// A chain begins when its first collective does and ends with its last. Two links are joined if the tasks between them
// wait only for the chain and for earlier work of their own rank. No other rank's task may wait for them. Later tasks
// of the own rank may wait, because the lane delays them anyway. So all dates inside a chain follow from its beginning
// by the additions that the event loop would make: the result is equal to the last bit. Chains are made for tensor
// groups, whose collectives are most tasks of a step. (Flows end by SimGrid's clock, added up event by event.)
//
// Between two links there may be collectives of the same members beside their tasks, such as the gathers for weight
// gradients under sequence parallelism. They wait for tasks of the members, and only later tasks of theirs wait for
// them. Tasks before a chain in the communicator's order are over when the chain begins.
//
//   ranks  ─┤k1├─┤   b   ├─┤k2├─┤   c   ├─┤k3├─      x: waits for what comes before b, c waits for it
//                ├ x ├
//
// Where hosts issue the tasks, all of a chain's count from the same synchronisation.
//
// A unit is a chain or a single task. Guarded by tests/sim/chains_test.cpp.
#pragma once

#include "sim/fidelity.h"

namespace slipway::sim {

struct Chains {
  std::vector<std::uint32_t> unit_of;  // per task
  Rows tasks;                          // per unit; a chain's in the order in which they run, rank by rank
  bool is_chain(std::uint32_t unit) const { return tasks[unit].size() > 1; }
};

// `speeds_vary`: durations are not constant, so every task is a unit.
Chains find_chains(const TaskGraph& graph, const TaskForms& forms, bool speeds_vary);

}  // namespace slipway::sim
