// Closed-form seconds of every task of a graph on a cluster: the list replay's and the executor's
// expectation, and the simulator's for everything but flows.
#pragma once

#include "models/cost.h"
#include "models/machine.h"
#include "schedules/graph/lowering.h"

namespace slipway {

// Seconds of one work of a compute lane on `machine`, task_overhead included. Throws std::invalid_argument
// when the machine cannot price an operator.
double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine);
// Seconds of one transfer or collective over links of this latency (s) and bandwidth (bytes/s).
double message_seconds(const Work& work, int members, double latency, double bandwidth,
                       double reduce_bandwidth);

// The slowest of the links on the ways between neighbours of a communicator's ring (of a pair: the one way), and
// its slowest adder (0: free); latency and bandwidth those of Cluster::message_costs where they are set for its axis. Throws std::invalid_argument when two neighbours share no fabric, or one without
// a bandwidth.
struct LinkPath {
  double latency = 0, bandwidth = 0, reduce_bandwidth = 0;  // s, bytes/s, bytes/s
  double weight = 1;  // bytes that a port is busy with for each byte of a message: more than 1 where messages
                      // of this axis cost more than their fabric
};
LinkPath path_of(const Cluster& cluster, const Communicator& communicator);

// Throws std::invalid_argument when the cluster has fewer GPUs than the layout has ranks, no fabric
// connects two members, or a machine cannot price an operator.
Durations durations_of(const TaskGraph& graph, const Cluster& cluster);

}  // namespace slipway
