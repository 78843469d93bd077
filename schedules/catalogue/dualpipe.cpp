// DualPipe: two copies of the model in one pipeline, in opposite directions, and pairs in which the forward of one
// direction and the backward of the other hide each other's messages (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report",
// section 3.2.1).
//
//   rank 0 │ 0F0 0F2 0F4 7F1 7I1 7W1 7F3[0F6 7B3][7F5 0B0]7B5[7F7 0B2]7B7 0I4 0W4 0I6 0W6         p = 4, m = 8
//   rank 1 │ 1F0 6F1 1F2 6F3 1F4 6B1[6F5 1B0][1F6 6B3][6F7 1B2]6B5 1B4 6I7 1I6 6W7 1W6            without waiting times;
//   rank 2 │ 5F1 2F0 5F3 2F2 5F5 2B0[2F4 5B1][5F7 2B2][2F6 5B3]2B4 5B5 2I6 5I7 2W6 5W7            [...]: a pair
//   rank 3 │ 4F1 4F3 4F5 3F0 3I0 3W0 3F2[4F7 3B2][3F4 4B1]3B4[3F6 4B3]3B6 4I5 4W5 4I7 4W7
//            stages 0..3 go down, 4..7 (the same four parts of the model) up
//
// Even micro-batches enter at rank 0, odd ones at rank p − 1, and both copies of a part share their gradients. The
// published bubble is (p/2 − 1)(F&B + B − 3W), with F&B the time of a pair, for p + 1 micro-batches in flight and two
// copies of the parameters. DualPipe wins where the all-to-alls of experts are as long as the compute beside them.
// DualPipe-V has half the ranks per micro-batch in flight, and one copy. Chimera has two directions without pairs.
//
// The order of a rank is that of dualpipe_order.h; ranks of the second half mirror those of the first.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <algorithm>
#include <string>

#include "schedules/catalogue/dualpipe_order.h"
#include "schedules/catalogue/two_directions.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  return refuse_two_directions("dualpipe", shape, "schedule.name dualpipe-v");
}

ActionLists actions(const ScheduleShape& shape) {
  const int p = shape.pipeline, half = p / 2, each_way = shape.micro_batches / 2;
  ActionLists lists;
  for (int rank = 0; rank < p; ++rank) {
    const DualPipeLeg down{rank, 0, 2, each_way}, up{2 * p - 1 - rank, 1, 2, each_way};
    const bool first_half = rank < half;
    lists.push_back(dualpipe_order(half, std::min(rank, p - 1 - rank), first_half ? down : up, first_half ? up : down));
  }
  return lists;
}

const RegisterSchedule registered{
    {.name = "dualpipe",
     .summary = "two copies of the model in opposite directions, forward beside backward (DeepSeek-AI 2024)",
     .copies = 2,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
