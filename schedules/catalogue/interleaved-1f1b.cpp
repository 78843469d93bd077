// Interleaved 1F1B: each rank holds v chunks of the model, stage s on rank s mod p, and micro-batches pass
// around the ring of ranks v times (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training
// on GPU Clusters Using Megatron-LM", SC21).
//
//   rank 0 │ 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 ...    p = 2, v = 2, m = 4
//   rank 1 │  .  1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 ...    (a column is one stage's pass)
//
// Micro-batches go in groups: a rank runs a group through its first chunk, then through its second, and so on. Backwards
// take the chunks in reverse. Rank r warms up with 2(p − r − 1) + (v − 1)g chunk forwards, g the size of the first group,
// and then takes turns.
// The groups are those of interleaved_order.h: p micro-batches where m is a multiple of p, else a few more.
// Interleaving wins where the bubble hurts: it shrinks from (p − 1)(F + B) to (p − 1)(F + B)/v for m ≥ p. It pays with v
// times the pipeline messages, and with activations: the first rank holds p(1 + (p − 1)/(pv)) stages' worth, not p, and
// v − 1 more for each micro-batch that a group has above p.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <string>

#include "schedules/catalogue/interleaved_order.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks < 2) {
    return ShapeRefusal{"interleaved-1f1b needs at least 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or more, or choose schedule.name 1f1b"};
  }
  if (const auto refusal = refuse_slices("interleaved-1f1b", shape)) return refusal;
  return refuse_group(shape);
}

ActionLists actions(const ScheduleShape& shape) { return take_turns(shape); }

const RegisterSchedule registered{{.name = "interleaved-1f1b",
                                   .summary = "1f1b with several chunks per rank: smaller bubble, more messages "
                                              "(Narayanan et al. 2021, SC21)",
                                   .default_chunks = 2,
                                   .has_groups = true,
                                   .searched = true,
                                   .interleaves = "1f1b",
                                   .has_memory_form = true,
                                   .refuse = refuse,
                                   .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
