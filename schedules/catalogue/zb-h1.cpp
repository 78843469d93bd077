// ZB-H1: 1F1B with the backward cut in two, I (gradient of the input) and W (gradient of the weights). No task waits
// for a W, so it fills what 1F1B leaves idle (Qi et al. 2024, "Zero Bubble Pipeline Parallelism").
//
//   rank 0 │ 0F0 0F1 0F2  .   .  0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3       p = 3, m = 4
//   rank 1 │  .  1F0 1F1  .  1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
//   rank 2 │  .   .  2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3
//
// The rule: the order of 1F1B; a W runs as late as memory allows. That is right before the forward that would otherwise
// make the rank hold p micro-batches. When no forward is left, rank r keeps r W for the end.
// So every rank holds p micro-batches from F to W, as much as the first rank of 1F1B. The bubble shrinks from
// (p − 1)(F + I + W) to (p − 1)(F + I − W). ZB-H1 wins over 1F1B wherever activations of p micro-batches fit on every
// rank. ZB-H2 takes twice the memory for the rest of the bubble, ZB-V cuts stages for it.
// Guarded by tests/schedules/catalogue_test.cpp.
#include "schedules/catalogue/zero_bubble_order.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) { return refuse_zero_bubble("zb-h1", shape); }
ActionLists actions(const ScheduleShape& shape) { return zero_bubble_order(shape, 1); }

const RegisterSchedule registered{
    {.name = "zb-h1",
     .summary = "1f1b with split backward, a third of its bubble in the same memory (Qi et al. 2024)",
     .also_called = "zero-bubble",
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
