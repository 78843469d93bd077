// 1F1B: one forward, one backward (PipeDream-Flush, Narayanan et al. 2021, "Memory-Efficient
// Pipeline-Parallel DNN Training"; the order in which DAPPLE and Megatron-LM run by default).
//
//   rank 0 │ 0F0 0F1 0F2  .   .  0B0 0F3 0B1  .  0B2  .  0B3        p = 3, m = 4
//   rank 1 │  .  1F0 1F1  .  1B0 1F2 1B1 1F3 1B2  .  1B3  .
//   rank 2 │  .   .  2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3  .   .
//            warm-up ─────┘   one forward, one backward  └─ cool-down
//
// Rank r warms up with p − r − 1 forwards and then takes turns. So it never holds the activations of more than
// min(p − r, m) micro-batches, whatever m is. The makespan (m + p − 1)(F + B) is that of GPipe: 1F1B wins by memory,
// and with it by a larger m. It loses where the bubble (p − 1)/(m + p − 1) hurts: few micro-batches on a deep pipeline.
// Interleaving or a split backward helps there.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <algorithm>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 1) {
    return ShapeRefusal{"1f1b runs one stage per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 1 or choose schedule.name interleaved-1f1b"};
  }
  return refuse_slices("1f1b", shape);
}

ActionLists actions(const ScheduleShape& shape) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    auto& list = lists[rank];
    const int warm_up = std::min(shape.pipeline - rank - 1, shape.micro_batches);
    for (int m = 0; m < warm_up; ++m) list.push_back({Pass::forward, rank, m});
    for (int m = 0; m < shape.micro_batches; ++m) {
      if (m + warm_up < shape.micro_batches) list.push_back({Pass::forward, rank, m + warm_up});
      list.push_back({Pass::backward, rank, m});
    }
  }
  return lists;
}

const RegisterSchedule registered{{.name = "1f1b",
                                   .summary = "one forward, one backward (Narayanan et al. 2021, PipeDream-Flush)",
                                   .searched = true,
                                   .is_default = true,
                                   .has_memory_form = true,
                                   .has_filled_form = true,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
