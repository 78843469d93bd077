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

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// The graph without `order`. The step must be legal (schedules/rules/rules.h), but for numbers of micro-batches that
// actions of its own take. Throws std::length_error as soon as there are more than `most_tasks`.
TaskGraph lower(const Step& step, const Representatives& representatives = {},
                std::size_t most_tasks = std::numeric_limits<std::size_t>::max());

}  // namespace slipway::schedules
