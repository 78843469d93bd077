// Closed-form seconds of every task of a graph on a cluster: the list replay's and the executor's
// expectation, and the simulator's for everything but flows.
#pragma once

#include "models/cost.h"
#include "models/machine.h"
#include "schedules/graph/lowering.h"

namespace slipway {

// Throws std::invalid_argument when the cluster has fewer GPUs than the layout has ranks, no fabric
// connects two members, or a machine cannot price an operator.
Durations durations_of(const TaskGraph& graph, const Cluster& cluster);

}  // namespace slipway
