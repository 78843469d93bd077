// The cluster's fabrics as SimGrid sees them.
//
//   root (empty zone)
//    ├─ fabric 0 (star zone)   host = one rank's port in it
//    │                         route = up link of its port ─► down link of the other's port
//    ├─ fabric 1, with a topology: host = one way, with all its links; one more host ends them all
//    └─ ...
//
// Links have latency 0 (SimGrid weighs sharing by 1/latency; latency is paid by a timer before the flow),
// and a port has two of them (with one, opposite flows would halve each other). GPUs behind one port share
// its links. A non-blocking fabric is no link, and a node-scope fabric needs no zone per node, because a
// route touches nothing but its two ports. In a star zone every route from a host has the same links; where
// a topology makes them depend on the pair of ranks, a host stands for the pair; so too for a weak pair of nodes
// (models/machine/degradation.h), whose way has one more link, which each flow may use at the pair's bandwidth. Only what
// some flow uses is built.
#pragma once

#include <vector>

#include "sim/fidelity.h"
#include "sim/flapping.h"

namespace simgrid::s4u {
class Host;
}

namespace slipway::sim {

// SimGrid counts whole bytes; sizes and bandwidths are given in these parts of a byte, so that a message of
// 1000/3 bytes is exact to 1e-8.
constexpr double parts_per_byte = 65536;

// Between which hosts a flow runs.
struct HostPair {
  simgrid::s4u::Host* from = nullptr;
  simgrid::s4u::Host* to = nullptr;
  double share = 1;  // the edge's
};

struct Network {
  std::vector<HostPair> pairs;         // of every edge
  std::vector<FlappingLink> flapping;  // links of ports that flap
};

// Sets SimGrid's options, starts its engine (once per process) and builds what the edges use of the fabrics.
Network build_platform(const Cluster& cluster, const std::vector<Edge>& edges);

}  // namespace slipway::sim
