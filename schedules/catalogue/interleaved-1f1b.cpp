// Interleaved 1F1B: each rank holds v chunks of the model, stage s on rank s mod p, and micro-batches pass
// around the ring of ranks v times (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training
// on GPU Clusters Using Megatron-LM", SC21).
//
//   rank 0 │ 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 ...    p = 2, v = 2, m = 4
//   rank 1 │  .  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 ...    (a column is one stage's pass)
//
// Micro-batches go in groups of p: a rank runs the group through its first chunk, then through its second, and so on.
// Backwards take the chunks in reverse. Rank r warms up with 2(p − r − 1) + (v − 1)p chunk forwards, then takes turns.
// Interleaving wins where the bubble hurts: it shrinks from (p − 1)(F + B) to (p − 1)(F + B)/v. It pays with v times
// the pipeline messages, and with activations: the first rank holds p(1 + (p − 1)/(pv)) stages' worth, not p.
// m must be a multiple of p, otherwise the last group would leave holes on every pass around the ring.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <algorithm>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks < 2) {
    return ShapeRefusal{"interleaved-1f1b needs at least 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or more, or choose schedule.name 1f1b"};
  }
  if (shape.slices != 1) {
    return ShapeRefusal{"interleaved-1f1b does not cut sequences into slices", "set schedule.slices to 1"};
  }
  if (shape.micro_batches % shape.pipeline != 0) {
    return ShapeRefusal{"interleaved-1f1b needs micro-batches in groups of layout.pipeline = " +
                            std::to_string(shape.pipeline) + ", but there are " + std::to_string(shape.micro_batches),
                        "change schedule.global_batch or schedule.micro_batch so that their number is a multiple of "
                        "it"};
  }
  return {};
}

// The k-th forward (backward) that a rank runs: its chunk and its micro-batch.
Action turn(const ScheduleShape& shape, int rank, Pass pass, int k) {
  const int round = shape.pipeline * shape.chunks;  // one group of p micro-batches through all chunks
  const int position = k % round / shape.pipeline;
  const int chunk = pass == Pass::forward ? position : shape.chunks - 1 - position;
  return {pass, chunk * shape.pipeline + rank, k / round * shape.pipeline + k % shape.pipeline};
}

ActionLists actions(const ScheduleShape& shape) {
  ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  const int turns = shape.micro_batches * shape.chunks;
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    auto& list = lists[rank];
    const int warm_up = std::min((shape.pipeline - rank - 1) * 2 + (shape.chunks - 1) * shape.pipeline, turns);
    for (int k = 0; k < warm_up; ++k) list.push_back(turn(shape, rank, Pass::forward, k));
    for (int k = 0; k < turns; ++k) {
      if (k + warm_up < turns) list.push_back(turn(shape, rank, Pass::forward, k + warm_up));
      list.push_back(turn(shape, rank, Pass::backward, k));
    }
  }
  return lists;
}

const RegisterSchedule registered{{.name = "interleaved-1f1b",
                                   .summary = "1f1b with several chunks per rank: smaller bubble, more messages "
                                              "(Narayanan et al. 2021, SC21)",
                                   .default_chunks = 2,
                                   .searched = true,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
