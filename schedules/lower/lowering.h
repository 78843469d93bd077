// From a step to its task graph. The lowering cuts actions into segments and adds all communication. It also adds what a
// layout needs: tied embeddings, sequence-parallel norms, gradient norm, ZeRO traffic, recomputation.
//
//   actions ──cut at communication──► segments, collectives, transfers ──► tasks, buffers, predecessors
//
// The graph has no order yet: schedules/time/global_order.h makes it from durations, which the lowering does not know.
// Guarded by tests/schedules/lowering_test.cpp.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "models/model/parameters.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// Bytes that each pipeline rank's members hold throughout a step: weights, gradients and optimizer of their shard.
// K-FAC's inverses are those of the replica with most.
std::vector<StaticBytes> static_bytes_of(const Step& step);
// The same for these parameters on one rank; `copies` of the model in the pipeline.
StaticBytes static_bytes_of(const BlockElements& elements, const Step& step, int copies = 1);

// The graph without `order`. The step must be legal (schedules/rules/rules.h), but for numbers of micro-batches that
// actions of its own take. Throws std::length_error as soon as there are more than `most_tasks`.
TaskGraph lower(const Step& step, const Representatives& representatives = {},
                std::size_t most_tasks = std::numeric_limits<std::size_t>::max());

}  // namespace slipway::schedules
