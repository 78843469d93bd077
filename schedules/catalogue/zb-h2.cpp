// ZB-H2: the backward cut in two as in ZB-H1, and so many forwards before the first backward that no rank
// ever waits for it (Qi et al. 2024, "Zero Bubble Pipeline Parallelism").
//
//   rank 0 │ 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4  .   .       p = 3, m = 5
//   rank 1 │  .  1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4  .
//   rank 2 │  .   .  2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
//
// The rule: rank r starts with 2(p − r) − 1 forwards. A W runs right before the forward that would otherwise make the
// rank hold 2p − 1 micro-batches. When no forward is left, rank r keeps 2r W for the end.
// Inside a rank's own span the bubble is max(0, (p − 1)(F + I − 2W)): none when F = I = W. The ranks start and end one
// F after another. So the whole step gains only if a rank may start the next step before the others have ended this
// one. That requires no gradient norm over all ranks (run.clip_norm). ZB-H2 loses on memory: every rank holds 2p − 1
// micro-batches, almost twice the first rank of 1F1B. Guarded by tests/schedules/catalogue_test.cpp.
#include "schedules/catalogue/zero_bubble_order.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) { return refuse_zero_bubble("zb-h2", shape); }
ActionLists actions(const ScheduleShape& shape) { return zero_bubble_order(shape, 2); }

const RegisterSchedule registered{
    {.name = "zb-h2",
     .summary = "split backward without a bubble, for twice the activations of 1f1b (Qi et al. 2024)",
     .also_called = "zero-bubble",
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
