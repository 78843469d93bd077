// V-Min: stages in a V with the least activations that a V can have, a third of those of 1F1B (Qi et al. 2024, "Pipeline
// Parallelism with Controllable Memory", NeurIPS 2024).
//
//   rank 0 │ 0F0  .   .  3F0 3I0 3W0 0F1 0I0 0W0 3F1 3I1 3W1 0F2 0I1 0W1 3F2 3I2 3W2 0F3 0I2 0W2 ...        p = 2, m = 4
//   rank 1 │  .  1F0 2F0  .   .  2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 1F2 2F2 2W1 1W1 2I2 1I2 1F3 2F3 ...
//
// All passes go from rank to rank in one step, so an activation is kept for 4p steps of which a micro-batch takes 6: rank 0
// holds about 2p/3 stage activations (p/3 micro-batches), where 1F1B holds p micro-batches. The bubble at F = I = W is
// about 4p, two thirds of 1F1B's 6(p − 1). With other durations the V waits more than 1F1B does, because nothing is ahead.
// V-Min wins where activations do not fit otherwise. V-Half has less bubble for half the memory of 1F1B, ZB-V none for all.
// Guarded by tests/schedules/catalogue_test.cpp.
#include "schedules/catalogue/v_pattern.h"

namespace slipway::schedules {
namespace {

std::array<int, 4> pattern(int p, int r) {
  const int apart = p % 3 == 0 ? 2 : 0;  // else I would meet F of a later micro-batch
  return {r, 2 * p - 1 - r, 2 * p + apart + r, 4 * p + apart - 1 - r};
}

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) { return refuse_v("v-min", shape); }
ActionLists actions(const ScheduleShape& shape) { return v_order(shape, pattern); }

const RegisterSchedule registered{
    {.name = "v-min",
     .summary = "stages in a V with a third of the activations of 1f1b (Qi et al. 2024, controllable memory)",
     .default_chunks = 2,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
