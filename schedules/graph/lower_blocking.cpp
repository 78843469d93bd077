// Trainers whose ranks wait until a message to the next stage is sent (Megatron-LM's and nanotron's point-to-point
// calls, unless told otherwise) before they go on:
//
//   rank 0 │ F0 │send│ F1 │send│        instead of        F0 │ F1 │
//                                                            │send│send│
//
// Control edges from each transfer to the sender's next action. Guarded by tests/lowering_test.cpp.
#include <algorithm>

#include "schedules/graph/lowering_state.h"

namespace slipway {

void wait_for_transfers(LoweringState& state) {
  const TaskGraph& graph = state.graph;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (task.kind != TaskKind::transfer) continue;
    const Work& work = graph.works[static_cast<std::size_t>(task.work)];
    const std::uint32_t sent_by = state.index_of({work.pass, work.stage, task.micro_batch, task.slice});
    const int sender = graph.communicators[static_cast<std::size_t>(task.communicator)].ranks[0];
    const auto& list = state.placed[static_cast<std::size_t>(sender)];
    const auto next = std::find_if(
        std::lower_bound(list.begin(), list.end(), std::pair<std::uint32_t, TaskId>{sent_by, 0}), list.end(),
        [&](const auto& placed) { return placed.first > sent_by; });
    if (next != list.end()) state.builder.control(id, next->second);
  }
}

}  // namespace slipway
