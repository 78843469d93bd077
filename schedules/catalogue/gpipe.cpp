// GPipe: all forwards, then all backwards (Huang et al. 2019, "GPipe: Efficient Training of Giant Neural
// Networks using Pipeline Parallelism").
//
//   rank 0 │ 0F0 0F1 0F2 0F3  .   .   .   .  0B0 0B1 0B2 0B3        p = 3, m = 4
//   rank 1 │  .  1F0 1F1 1F2 1F3  .   .  1B0 1B1 1B2 1B3  .
//   rank 2 │  .   .  2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3  .   .
//
// The makespan is (m + p − 1)(F + B), with the bubble of 1F1B. GPipe wins by simplicity and where the backward of the
// whole batch must come after its forward. It loses on memory: at its peak every rank holds the activations of all m
// micro-batches, where 1F1B holds at most p.
// The backward runs in the order of the forward, so the first gradient needed is that of the activation kept longest.
// Either order gives the same makespan.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 1) {
    return ShapeRefusal{"gpipe runs one stage per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 1 or choose schedule.name interleaved-1f1b"};
  }
  return refuse_slices("gpipe", shape);
}

ActionLists actions(const ScheduleShape& shape) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    auto& list = lists[rank];
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      for (int m = 0; m < shape.micro_batches; ++m) list.push_back({pass, rank, m});
    }
  }
  return lists;
}

const RegisterSchedule registered{{.name = "gpipe",
                                   .summary = "all forwards, then all backwards (Huang et al. 2019)",
                                   .searched = true,
                                   .has_filled_form = true,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
