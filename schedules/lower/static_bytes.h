// What a rank holds throughout a step, whatever its schedule is at. Guarded by tests/schedules/lowering_test.cpp.
#pragma once

#include <vector>

#include "models/model/parameters.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// Bytes that each pipeline rank's members hold throughout a step: weights, gradients and optimizer of their shard.
// K-FAC's inverses are those of the replica with most.
std::vector<StaticBytes> static_bytes_of(const Step& step);
// The same for these parameters on one rank; `copies` of the model in the pipeline.
StaticBytes static_bytes_of(const BlockElements& elements, const Step& step, int copies = 1);

}  // namespace slipway::schedules
