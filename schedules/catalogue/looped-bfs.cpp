// Breadth-first pipeline: each rank holds v chunks of the model, as interleaved 1F1B, but runs all micro-batches through
// a chunk before it goes on to the next one (Lamy-Poirier 2022, "Breadth-First Pipeline Parallelism", MLSys 2023; PyTorch's
// ScheduleLoopedBFS).
//
//   rank 0 │ 0F0 0F1 0F2 2F0 2F1 2F2  .  2B2 2B1 2B0 0B2 0B1 0B0        p = 2, v = 2, m = 3
//   rank 1 │  .  1F0 1F1 1F2 3F0 3F1 3F2 3B2 3B1 3B0 1B2 1B1 1B0
//
// The bubble is (p − 1)(F + B)/v for m ≥ p, that of interleaved 1F1B. All m micro-batches are held, as in GPipe. It wins
// with sharded weights (ZeRO 3), where a trainer gathers a chunk's weights once for all micro-batches of a pass (the
// lowering gathers them for each), and its gradient is complete early.
// Backwards take the micro-batches in reverse: the one whose activations are kept longest ends the step.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks < 2) {
    return ShapeRefusal{"looped-bfs needs at least 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or more, or choose schedule.name gpipe"};
  }
  return refuse_slices("looped-bfs", shape);
}

ActionLists actions(const ScheduleShape& shape) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk)
      for (int m = 0; m < shape.micro_batches; ++m)
        lists[rank].push_back({Pass::forward, chunk * shape.pipeline + rank, m});
    for (int chunk = shape.chunks - 1; chunk >= 0; --chunk)
      for (int m = shape.micro_batches - 1; m >= 0; --m)
        lists[rank].push_back({Pass::backward, chunk * shape.pipeline + rank, m});
  }
  return lists;
}

const RegisterSchedule registered{{.name = "looped-bfs",
                                   .summary = "all micro-batches through one chunk after the other (Lamy-Poirier 2022)",
                                   .default_chunks = 2,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
