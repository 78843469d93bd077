// The links between two ports of a fabric, and which of them messages share.
//
//   star            a ─► b                          non-blocking: nothing is shared but the ports
//   fat-tree        a ─► leaf ═► (pod ═►) core ═► leaf ─► b          ═►  shared, maybe oversubscribed
//   rail-optimised  GPU i of every node on leaf i; other rails over the core, or through the node first
//   dragonfly       a ─► router ═► gateway ═► gateway ═► router ─► b
//   torus           along one dimension after the other
//   pcie            GPUs behind switches behind host bridges
//
// A topology is one file in models/machine/topologies/: a pure function from two ports to the directed links on the
// way, each with its bandwidth. No other code knows a topology: closed forms take the narrowest link, the simulator
// shares the links among the flows on them. A link that can carry all that its ports send is left out. Guarded by
// tests/models/topology_test.cpp (ways and bandwidths) and tests/sim/sim_topology_test.cpp (contention).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/machine.h"

namespace slipway::models {

// A port of one copy of a fabric. `node` counts the fabric's own nodes, `number` its ports, both from 0.
struct Port {
  int node = 0, port = 0, number = 0;
};
struct FabricPorts {
  int nodes = 0;           // of one copy: 1 inside a node
  int ports_per_node = 0;  // of the largest node
  int count = 0;
};

// One directed link; `key` is unique in the copy of the fabric.
struct WayLink {
  std::uint32_t key = 0;
  double bandwidth = 0;          // bytes/s
  int leaves = -1, enters = -1;  // numbers of the ports at its ends, which may be slow; -1: a switch
};
// A way between ports of one fabric.
struct Way {
  std::vector<WayLink> links;
  int hops = 0;        // links between switches, each with a hop_latency
  int leaves_by = -1;  // ≥ 0: the data first moves inside its node to the GPU of this port
};

// Kinds of keys: the first two are the ports' own links; each topology uses the others as it needs.
enum class LinkKind : std::uint32_t { port_up, port_down, inner, inner_down, long_link };
constexpr std::uint32_t key_of(LinkKind kind, std::uint32_t index) {
  return static_cast<std::uint32_t>(kind) << 28 | index;
}
void add_port_up(Way& way, const Fabric& fabric, const Port& port);
void add_port_down(Way& way, const Fabric& fabric, const Port& port);
// bytes/s of an inner link, and of a longest one: the shape's, or else the ports'.
double link_bandwidth(const Fabric& fabric);
double global_bandwidth(const Fabric& fabric);

struct Topology {
  std::string name;     // "fat-tree"
  std::string summary;  // one line for `slipway list topologies`, with the source
  std::string reads;    // the fields of TopologyShape that it reads, and what `shape` counts
  // Empty when the shape fits the ports; otherwise the defect, what is allowed, and what to change.
  struct Misfit {
    std::string key, message, remedy;  // key: "shape"
  };
  Misfit (*refuse)(const Fabric&, const FabricPorts&) = nullptr;
  void (*route)(const Fabric&, const FabricPorts&, const Port& from, const Port& to, Way& way) = nullptr;
  // True if every way has only the two ports' own links, and the same latency. nullptr: never.
  bool (*is_star)(const Fabric&, const FabricPorts&) = nullptr;
};

// All but the star, sorted by name; one by name (nullptr when unknown).
const std::vector<Topology>& all_topologies();
const Topology* topology_named(std::string_view name);
// Put one static object of this type in each topology's file.
struct RegisterTopology {
  explicit RegisterTopology(Topology topology);
};

// Ports of one copy of a fabric of the cluster. Inside nodes, those of the largest node.
FabricPorts ports_of(const Cluster& cluster, const Fabric& fabric);
// True if nothing is between the ports. A fat-tree without oversubscription, for example, equals a star.
bool is_star(const Cluster& cluster, const Fabric& fabric);

// A message's way between two ranks: all directed links of the cluster that it crosses.
struct RouteLink {
  std::uint64_t id = 0;         // unique in the cluster
  double bandwidth = 0;         // while it is up
  double period = 0, down = 0;  // of a port that flaps (models/machine/degradation.h)
};
struct Route {
  double latency = 0;  // seconds
  std::vector<RouteLink> links;
  double cap = 0;      // largest bytes/s of one message, for a weak pair of nodes; else infinite
  double healthy = 0;  // bytes/s of the narrowest link, if no port were slow and no pair weak
};
// Replaces `route` by the one over fabric `fabric` (an index; see fabric_between). The route from a rank to itself goes
// out of its port and in again. Throws std::invalid_argument where data shall move inside a node that has no fabric of
// its own.
void find_route(const Cluster& cluster, int fabric, int from, int to, Route& route);
double narrowest(const Route& route);  // bytes/s, on average of a port that flaps

}  // namespace slipway::models
