// A rank's part of the task graph as nodes of a Chakra execution trace.
//
//   task of the graph                 nodes of each member rank
//   segment, optimizer, bubble work   one compute node
//   transfer                          a send on the first member, a receive on the second
//   collective                        one collective node, of the communicator's group
//   exchange round a ring             a send to the next member and a receive from the one before
//
// A node comes after its task's predecessors on the same rank, and after the node before it on its lane. Both are data
// dependencies, as Chakra's feeder reads no others. A dependency on another rank is always a message of the graph.
// Guarded by tests/scenarios/export_command_test.cpp.
#pragma once

#include <functional>

#include "scenarios/commands/export/execution_trace.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

// The tasks of each rank in the global order, computed once for all ranks.
Rows tasks_of_ranks(const TaskGraph& graph);

// Calls `visit` with the nodes of a rank, each after those that it comes after. `tasks`: the rank's row.
void each_node(const TaskGraph& graph, const Durations& durations, std::int32_t rank,
               std::span<const std::uint32_t> tasks, const std::function<void(const ExecutionNode&)>& visit);

}  // namespace slipway::scenarios
