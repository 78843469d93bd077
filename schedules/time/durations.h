// Closed-form seconds of every task of a graph on a cluster: the list replay's and the executor's
// expectation, and the simulator's for everything but flows.
#pragma once

#include "models/machine/cost.h"
#include "models/machine/machine.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

// Seconds of one work of a compute lane on `machine`, task_overhead included. Throws std::invalid_argument
// when the machine cannot price an operator.
double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine);
// Seconds of one transfer or collective over links of this latency (s) and bandwidth (bytes/s).
double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth);
// The same by the algorithm that it takes on this path.
double message_seconds(const Work& work, int members, const LinkPath& path);

// What members do to a message before they send it: around a ring, they add their own gradient to it. Of the slowest
// member; nothing where Cluster::message_costs say what such messages take altogether.
double seconds_before(const Work& work, const Communicator& communicator, const Cluster& cluster);

// Does Cluster::message_costs price it together with others? What a trainer's layers show of the gathers for weight gradients is
// in what it was measured to take for its tensor group's messages: they take no time of their own then.
bool is_priced_with_others(const TaskGraph& graph, const Work& work, const Cluster& cluster);

// Throws std::invalid_argument when the cluster has fewer GPUs than the layout has ranks, no fabric
// connects two members, or a machine cannot price an operator.
Durations durations_of(const TaskGraph& graph, const Cluster& cluster);

// The same, and the graph's global order. Ranks run in the order that was planned before anybody knew of slow
// GPUs and ports: that of the healthy cluster.
Durations order_and_price(TaskGraph& graph, const Cluster& cluster);

}  // namespace slipway::schedules
