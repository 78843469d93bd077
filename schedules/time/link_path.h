// The links under a communicator, as one latency and one bandwidth, for the closed forms of its messages.
//
//   ring                             the slowest link between neighbours (models/machine/topology.h), the slowest adder
//   multi-ring, tree, hierarchical   the α and β that make the ring's formula theirs (models/machine/collectives.h), if
//                                    the members lie on every node alike; else, and for a pair of pipeline ranks, the
//                                    ring's
//   nccl                             multi-ring, and for each all-reduce the tree where that takes less
//   gloo                             the ring's; for all-gathers and reduce-scatters, the ports of all pairs
//   all-to-alls of experts           pairwise over the ports that each pair has, whatever the algorithm
//
// GPUs with measured collectives: inside a node, a collective takes launch + hops + what its members copy + the filling of
// the ring beside the bytes over a port; between nodes, each message has a start and each further node a hop.
// Guarded by tests/sim/algorithm_test.cpp.
#pragma once

#include <optional>

#include "models/machine/priced_cluster.h"
#include "models/model/operators.h"
#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

struct LinkPath {
  double latency = 0, bandwidth = 0, reduce_bandwidth = 0;  // s, bytes/s, bytes/s
  double weight = 1;  // bytes that a port is busy with for each byte of a message: more than 1 without a switch
  Algorithm algorithm = Algorithm::ring;  // of latency and bandwidth; never nccl
  bool chooses = false;                   // nccl: all-reduces by `tree` where they take less
  Links tree{};                           // for an all-reduce by trees; bandwidth 0: not available
  Span span{};                            // for algorithms other than ring
  Links neighbours{};                     // the slowest from one rank to the next, for a shift
  Links pairs{};                          // of every member to every other: Gloo's, and all-to-alls of members without
                                          // a span, or in a ring with a weak pair; bandwidth 0: not available
  RouteBytes routes{};                    // of tokens, in all-to-alls
  double start = 0;                       // seconds of a message beside its rounds and bytes
  double port_share = 1;                  // of a port to other nodes, for each GPU of a node
  const Machine* measured = nullptr;      // its GPUs, where collectives are priced by measured ones (kernels.h)
  bool operator==(const LinkPath&) const = default;
};

// Throws std::invalid_argument when two neighbours share no fabric, or one without a bandwidth.
LinkPath path_of(const PricedCluster& cluster, const Communicator& communicator);
// The members' positions on the nodes; empty where nodes have unequal numbers of them, or recur in the order.
std::optional<Span> span_of(const Cluster& cluster, const Communicator& communicator);

// The algorithm that a message takes, and its seconds without contention. `bytes` as in ring_seconds.
Algorithm algorithm_of(const LinkPath& path, Collective collective, int members, double bytes);
Links links_of(const LinkPath& path, Collective collective, Algorithm algorithm);
// The members' span, with what this collective reaches of their links where it is priced by measured ones.
Span measured_span(const LinkPath& path, Collective collective);
// Seconds of a message before its rounds and bytes.
double start_seconds(const LinkPath& path, Collective collective, int members, double bytes);
double collective_seconds(const LinkPath& path, Collective collective, int members, double bytes);

}  // namespace slipway::schedules
