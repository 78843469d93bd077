// Evaluation as bubble work: forward passes of held-out micro-batches through the pipeline.
//
//   rank 0 │ 0F0 0F1 E0 E1  .  0B0 0B1 │      2.eval0: stage 2, evaluation micro-batch 0
//   rank 1 │  .  1F0 1F1 1B0 E0 1B1 E1 │      each waits for its message from the stage before
//
// Weights change with every step, so a frozen copy of them is evaluated (often the running average). Memory counts
// this copy, and each residual between two stages from its arrival to its use.
// Guarded by tests/schedules/fill_test.cpp.
#pragma once

#include "models/machine/priced_cluster.h"
#include "schedules/fill/fill.h"
#include "schedules/time/durations.h"

namespace slipway::schedules {

// Requires an ordered `step` and `durations` of its tasks in seconds. `micro_batches`: per replica and window. Throws
// std::invalid_argument for layers that are spread over ranks (tensor, context), because their forwards communicate.
BubbleWork evaluation_bubble_work(const TaskGraph& step, const PricedCluster& cluster, const Durations& durations,
                                  int micro_batches);

}  // namespace slipway::schedules
