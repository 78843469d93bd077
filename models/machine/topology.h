// The links between two ports of a fabric, and which of them messages share.
//
//   star            a ─► b                          non-blocking: nothing is shared but the ports
//   fat-tree        a ─► leaf ═► (pod ═►) core ═► leaf ─► b          ═►  shared, maybe oversubscribed
//   rail-optimised  GPU i of every node on leaf i; other rails over the core, or through the node first
//   dragonfly       a ─► router ═► gateway ═► gateway ═► router ─► b
//   torus           along one dimension after the other
//   pcie            GPUs behind switches behind host bridges
//
// A topology is one file in models/machine/topologies/: the parameters that it has, and a pure function from two ports to
// the directed links on the way, each with its bandwidth. No other code knows a topology. Closed forms take the narrowest
// link, the simulator shares the links among the flows on them. A link that can carry all that its ports send is left out.
// Keys, help, reading, refusing and the resolved text follow from the declared parameters (scenarios/language/keys_scenario.cpp,
// load_cluster.cpp). Guarded by tests/models/topology_test.cpp (parameters, ways and bandwidths) and
// tests/sim/sim_topology_test.cpp (contention).
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
enum class ParameterUnit : std::uint8_t { pure, bytes, bytes_per_second, seconds };

// A parameter of a topology: the key cluster.fabrics.*.topology.<name>. Topologies that declare the same name share the
// key: its kind, unit, range and words are the same; default and meaning may differ.
struct TopologyParameter {
  enum class Kind : std::uint8_t { number, integer, integers, word };
  std::string name;       // "uplinks"
  std::string meaning;    // one line
  std::string otherwise;  // the default, in words
  Kind kind = Kind::number;
  ParameterUnit unit = ParameterUnit::pure;            // of a number
  double min = 0, max = 1e6;                           // inclusive, of numbers and of each item of a list
  bool above_min = false;                              // min itself is excluded
  std::vector<std::string_view> (*words)() = nullptr;  // the first is the default
  double (*fallback)(const Fabric&) = nullptr;         // default of a number; nullptr: 0
};

// Parameters that several topologies have.
TopologyParameter shape_parameter(std::string meaning, std::string otherwise = "none");  // counts from the ports upward
TopologyParameter uplinks_parameter();                              // of a switch, per level; empty: none is missing
TopologyParameter oversubscription_parameter();                     // bandwidth below the first switches / above them
TopologyParameter link_bandwidth_parameter();                       // bytes/s of one inner link and direction
TopologyParameter global_bandwidth_parameter(std::string meaning);  // bytes/s of a longest link
TopologyParameter hop_latency_parameter();                          // seconds more for every link between switches

// The value that the fabric gives to a parameter of its topology, or its default there. Throw std::logic_error where the
// topology has no such parameter.
double number_of(const Fabric& fabric, std::string_view parameter);
const std::vector<int>& counts_of(const Fabric& fabric, std::string_view parameter);
std::string_view word_of(const Fabric& fabric, std::string_view parameter);
// bytes/s of an inner link, and of a longest one.
double link_bandwidth(const Fabric& fabric);
double global_bandwidth(const Fabric& fabric);
// The given parameters of this unit as they would be at so many times the speed: bandwidths times it, seconds through it.
void speed_up_parameters(Fabric& fabric, ParameterUnit unit, double speed);

struct Topology {
  std::string name;     // "fat-tree"
  std::string summary;  // one line for `slipway list topologies`, with the source
  std::vector<TopologyParameter> parameters;
  // Empty when the parameters fit the ports; otherwise the defect, what is allowed, and what to change.
  struct Misfit {
    std::string key, message, remedy;  // key: "shape"
  };
  Misfit (*refuse)(const Fabric&, const FabricPorts&) = nullptr;
  // The same once all fabrics of the cluster are known. Sets the parameters whose defaults follow from the others.
  // nullptr: nothing does.
  Misfit (*settle)(const Cluster&, Fabric&) = nullptr;
  void (*route)(const Fabric&, const FabricPorts&, const Port& from, const Port& to, Way& way) = nullptr;
  // True if every way has only the two ports' own links, and the same latency. nullptr: never.
  bool (*is_star)(const Fabric&, const FabricPorts&) = nullptr;
};
const TopologyParameter* parameter_named(const Topology& topology, std::string_view name);  // nullptr when it has none

// All but the star, sorted by name; one by name (nullptr when unknown).
const std::vector<Topology>& all_topologies();
const Topology* topology_named(std::string_view name);
// Put one static object of this type in each topology's file. Throws std::logic_error for a name that is taken, and for a
// parameter that another topology declares with another kind, unit, range or words.
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
