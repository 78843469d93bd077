// ZB-H2: the backward cut in two as in ZB-H1, and so many forwards before the first backward that no rank
// ever waits for it (Qi et al. 2024, "Zero Bubble Pipeline Parallelism").
//
//   rank 0 │ 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4  .   .       p = 3, m = 5
//   rank 1 │  .  1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4  .
//   rank 2 │  .   .  2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
//
// The rule: rank r starts with 2(p − r) − 1 forwards; a W runs right before the forward for which 2p − 1
// micro-batches would otherwise be held; when no forward is left, rank r keeps 2r of them for the end.
// Inside a rank's own span the bubble is max(0, (p − 1)(F + I − 2W)): none when F = I = W. The ranks start and
// end one F after another, so the step as a whole gains only when a rank may start the next step before the
// others have ended this one, that is without a gradient norm over all ranks (run.clip_norm).
// Loses on memory: every rank holds 2p − 1 micro-batches, almost twice the first rank of 1F1B.
// Guarded by tests/zero_bubble_test.cpp.
#include <algorithm>
#include <string>

#include "schedules/action.h"

namespace slipway {
namespace {

std::string refuse(const ScheduleShape& shape) {
  if (shape.chunks != 1) {
    return "zb-h2 runs one stage per rank, not " + std::to_string(shape.chunks) +
           "; set layout.chunks to 1 or choose schedule.name zb-v";
  }
  if (shape.slices != 1) {
    return "zb-h2 does not cut sequences into slices; set schedule.slices to 1";
  }
  return {};
}

ActionLists actions(const ScheduleShape& shape) {
  const int p = shape.pipeline, m = shape.micro_batches;
  ActionLists lists(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    auto& list = lists[static_cast<std::size_t>(rank)];
    int forwards = 0, weights = 0;
    const auto forward = [&] { list.push_back({Pass::forward, rank, forwards++}); };
    const auto weight = [&] { list.push_back({Pass::weight_grad, rank, weights++}); };
    while (forwards < std::min(2 * (p - rank) - 1, m)) forward();
    for (int input = 0; input < m; ++input) {
      list.push_back({Pass::input_grad, rank, input});
      if (forwards < m) {
        if (forwards - weights == 2 * p - 1) weight();
        forward();
      } else if (input - weights >= 2 * rank) {
        weight();
      }
    }
    while (weights < m) weight();
  }
  return lists;
}

const RegisterSchedule registered{
    {.name = "zb-h2",
     .summary = "split backward without a bubble, for twice the activations of 1f1b (Qi et al. 2024)",
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway
