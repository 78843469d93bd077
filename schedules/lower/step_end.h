// The end of a step: gradient reductions, global norm, optimizer, parameter gathers.
// Guarded by tests/schedules/lowering_test.cpp.
#pragma once

#include "schedules/lower/lowering_state.h"

namespace slipway::schedules {

// With hybrid sharding, the sum over the copies of one shard that follows a reduction.
Work work_of_copies(const Work& reduction, double shards);
// The work of a collective on a gradient bucket: bytes of this rank's shard, label "L5.ar_grad", "L5.experts.ar_grad".
Work bucket_work(const LoweringState& state, WorkKind kind, int stage, int bucket);
// The sum of squares of a bucket's gradient, label "L5.worker_norm".
Work worker_norm_work(const LoweringState& state, int stage, int bucket);

// Appends to compute_order.
void lower_step_end(LoweringState& state);

}  // namespace slipway::schedules
