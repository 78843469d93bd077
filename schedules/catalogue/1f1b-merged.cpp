// Merged 1F1B: 1F1B, interleaved where ranks have several chunks, in which each forward and the backward behind it are a
// pair. All-to-alls of one run while the other computes (Megatron-Core 2025, overlap_moe_expert_parallel_comm).
//
//   rank 0 │ 0F0 0F1 0F2[0F3 0B0][0F4 0B1][0F5 0B2][0F6 0B3][0F7 0B4]0B5 0B6 0B7      p = 2, m = 8; [...]: a pair
//   rank 1 │ 1F0[1F1 1B0][1F2 1B1][1F3 1B2][1F4 1B3][1F5 1B4][1F6 1B5][1F7 1B6]1B7    (without waiting times)
//
// The two of a pair are of different micro-batches, so a rank warms up with one forward more than interleaved 1F1B:
// 2(p − r − 1) + (v − 1)g + 1, g the size of a group. What a pair makes is there at its end. So it reaches the next rank
// one pair later, forwards and backwards alike, and no rank waits. The bubble stays (p − 1)(F + B)/v, and one stage
// activation more is held. It wins where all-to-alls of experts take long; without them it only costs memory.
// Megatron-Core runs it without pipeline, or with several chunks. One chunk in a pipeline is the same order.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/catalogue/interleaved_order.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (const auto refusal = refuse_slices("1f1b-merged", shape)) return refusal;
  return refuse_group(shape);
}

ActionLists actions(const ScheduleShape& shape) { return take_turns(shape, 1, true); }

const RegisterSchedule registered{
    {.name = "1f1b-merged",
     .summary =
         "1f1b in pairs that hide all-to-alls, also interleaved (Megatron-Core 2025, overlap_moe_expert_parallel_comm)",
     .has_groups = true,
     .hides_exchanges = true,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
