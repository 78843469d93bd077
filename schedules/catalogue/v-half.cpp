// V-Half: stages in a V with half of the activations of 1F1B (Qi et al. 2024, "Pipeline Parallelism with Controllable
// Memory", NeurIPS 2024).
//
//   rank 0 │ 0F0  .   .  3F0 0F1 3I0 3W0 3F1 0F2  .  0I0 3I1 0W0 3F2 3W1 0F3 0I1 3I2 0W1 3F3 3W2 ...        p = 2, m = 4
//   rank 1 │  .  1F0 2F0  .   .  1F1 2F1 2I0 2W0 1I0 1W0 1F2 2F2 2I1 2W1 1I1 1W1 1F3 2F3 2I2 2W2 ...
//
// On the way down a pass takes two steps from rank to rank, on the way up one. So an activation is kept for 6p steps of
// which a micro-batch takes 6: every rank holds about p stage activations (p/2 micro-batches), where 1F1B holds p
// micro-batches. The bubble at F = I = W is about 3.1p, a little more than half of 1F1B's 6(p − 1).
// V-Half wins where memory is short and V-Min's bubble is too long.
// Guarded by tests/schedules/catalogue_test.cpp.
#include "schedules/catalogue/v_pattern.h"

namespace slipway::schedules {
namespace {

std::array<int, 4> pattern(int p, int r) {
  const int apart = p % 2 == 0 ? 3 : 0;  // else I would meet F of a later micro-batch
  return {2 * r, 3 * p - 2 - r, 3 * p + apart - 1 + 2 * r, 6 * p + apart - 2 - r};
}

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) { return refuse_v("v-half", shape); }
ActionLists actions(const ScheduleShape& shape) { return v_order(shape, pattern); }

const RegisterSchedule registered{
    {.name = "v-half",
     .summary = "stages in a V with half of the activations of 1f1b (Qi et al. 2024, controllable memory)",
     .default_chunks = 2,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
