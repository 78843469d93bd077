// DualPipe-V: DualPipe (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report") cut in half. The two directions of its
// pipeline become the two legs of a V, and no weights are held twice (Sea AI Lab 2025, "DualPipe could be better
// without the Dual").
//
//   rank 0 │ 0F0 0F1 0F2 3F0 3I0 3W0 3F1[0F3 3B1][3F2 0B0]3B2[3F3 0B1]3B3 0I2 0W2 0I3 0W3       p = 2, m = 4
//   rank 1 │  .  1F0 2F0 1F1 2F1 1F2 2B0[2F2 1B0][1F3 2B1][2F3 1B1]2B2 1B2 2I3 1I3 2W3 1W3    [...]: a pair
//
// In the steady state a forward of one leg and a backward of the other are a pair: messages of one run while the other
// computes (schedules/lower/pairs.h). Backwards are whole there, and cut in two only where the pipeline fills and
// drains. The bubble is (p − 1)/2·F at F = I = W, with F that of both stages of a rank. Every rank holds 2p + 1 stage
// activations (p + ½ micro-batches).
// DualPipe-V wins where long messages (experts) must hide behind compute. ZB-V has no bubble and holds half a
// micro-batch less, but leaves nothing to hide messages in.
// The order is that of dualpipe_order.h.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/catalogue/dualpipe_order.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 2) {
    return ShapeRefusal{"dualpipe-v needs 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or choose another schedule.name"};
  }
  return refuse_slices("dualpipe-v", shape);
}

ActionLists actions(const ScheduleShape& shape) {
  const int p = shape.pipeline, m = shape.micro_batches;
  ActionLists lists;
  for (int rank = 0; rank < p; ++rank)
    lists.push_back(dualpipe_order(p, rank, {.stage = rank, .count = m}, {.stage = 2 * p - 1 - rank, .count = m}));
  return lists;
}

const RegisterSchedule registered{
    {.name = "dualpipe-v",
     .summary = "forward of one leg of a V beside backward of the other (DeepSeek-AI 2024, Sea AI Lab 2025)",
     .default_chunks = 2,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
