// The cluster's fabrics in SimGrid.
//
//   root (empty zone)
//    ├─ fabric 0 (star zone)   host = one rank's port in it
//    │                         route = up link of its port ─► down link of the other's port
//    ├─ fabric 1, with a topology: host = one way, with all its links; one more host ends all ways
//    └─ ...
//
// Links have latency 0, because SimGrid weighs sharing by 1/latency; a timer pays latency before the flow. A port has
// two links, because with one, opposite flows would halve each other. GPUs behind one port share its links. A
// non-blocking fabric has no link, and a node-scope fabric needs no zone per node, because a route touches only its two
// ports. In a star zone every route from a host has the same links. Where a topology makes them depend on the pair of
// ranks, a host represents the pair. The same holds for a weak pair of nodes (models/machine/degradation.h): its way
// has one more link, which each flow may use at the pair's bandwidth. Only what some flow uses is built.
#pragma once

#include <vector>

#include "sim/fidelity.h"
#include "sim/flapping.h"

namespace simgrid::s4u {
class Host;
}

namespace slipway::sim {

// SimGrid counts whole bytes. Sizes and bandwidths are given in these parts of a byte, so that a message of 1000/3
// bytes is exact to 1e-8.
constexpr double parts_per_byte = 65536;

// The hosts between which a flow runs.
struct HostPair {
  simgrid::s4u::Host* from = nullptr;
  simgrid::s4u::Host* to = nullptr;
  double share = 1;  // the edge's
  int flows = 1;
};

struct Network {
  std::vector<HostPair> pairs;         // of every edge
  std::vector<FlappingLink> flapping;  // links of ports that flap
};

// Sets SimGrid's options, starts its engine (once per process) and builds the parts of the fabrics that edges use.
Network build_platform(const Cluster& cluster, const std::vector<Edge>& edges);

}  // namespace slipway::sim
