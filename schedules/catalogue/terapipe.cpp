// TeraPipe: pipelining along the sequence. A causal token needs no later one, so a sequence can be cut into slices. A
// stage starts a slice as soon as the stage before has done it (Li et al. 2021, "TeraPipe: Token-Level Pipeline
// Parallelism for Training Large-Scale Language Models", ICML 2021).
//
//   rank 0 │  0F0  0F0/1  0F1  0F1/1   .     .    0B0/1  0B0  0B1/1  0B1       p = 2, m = 2, 2 slices
//   rank 1 │   .    1F0  1F0/1  1F1  1F1/1  1B0/1  1B0  1B1/1  1B1    .        0F1/1: micro-batch 1, slice 1
//
// All forwards run, slice after slice, then all backwards, each micro-batch from its last slice to its first: the keys
// and values of a slice get gradients from every later one. With S slices of equal time the makespan is
// (m·S + p − 1)(F + B)/S, the bubble 1/S of GPipe's. Real slices are not equal: attention of a later one reads more
// keys, which the cost model counts.
// TeraPipe wins with few micro-batches of long sequences. It loses on memory (everything is held, as in GPipe) and by
// small kernels: a slice must be large enough to fill the GPU.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 1) {
    return ShapeRefusal{"terapipe runs one stage per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 1 or choose schedule.name interleaved-1f1b"};
  }
  return {};
}

ActionLists actions(const ScheduleShape& shape) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    auto& list = lists[rank];
    for (int m = 0; m < shape.micro_batches; ++m)
      for (int slice = 0; slice < shape.slices; ++slice) list.push_back({Pass::forward, rank, m, slice});
    for (int m = 0; m < shape.micro_batches; ++m)
      for (int slice = shape.slices - 1; slice >= 0; --slice) list.push_back({Pass::backward, rank, m, slice});
  }
  return lists;
}

const RegisterSchedule registered{{.name = "terapipe",
                                   .summary = "slices of a causal sequence as micro-batches (Li et al. 2021)",
                                   .default_slices = 4,
                                   .needs_causal = true,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
