// From a scenario's numbers to the task graph. The lowering cuts actions into segments and adds all communication. It
// also adds what a layout needs: tied embeddings, sequence-parallel norms, gradient norm, ZeRO traffic, recomputation.
// Then the global order is computed once and stored.
#pragma once

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

// Bytes that each pipeline rank's members hold throughout a step: weights, gradients and optimizer of their shard.
// K-FAC's inverses are those of the replica with most.
std::vector<StaticBytes> static_bytes_of(const Step& step);
// The same for `elements` parameters (of a tensor shard) on one rank; `copies` of the model in the pipeline.
StaticBytes static_bytes_of(double elements, const Layout& layout, Dtype dtype, Dtype gradient_dtype, int copies = 1);

// The graph without `order`. The step must be legal (schedules/rules/rules.h).
TaskGraph lower(const Step& step, const Representatives& representatives = {});

// Seconds of each task; size = number of tasks. schedules/time/durations.h makes them.
using Durations = std::vector<double>;

// Sets graph.order: topological order by start time in a list replay with these durations, ties by id.
void set_global_order(TaskGraph& graph, const Durations& durations);

}  // namespace slipway::schedules
