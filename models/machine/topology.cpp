#include "models/machine/topology.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace slipway::models {
namespace {

// Function-local so that it exists before the first static RegisterTopology of any file runs.
std::vector<Topology>& registry() {
  static std::vector<Topology> topologies;
  return topologies;
}

int ports_in(const NodeGroup& group, const Fabric& fabric) {
  const int shared = std::max(1, fabric.gpus_per_port);
  return (group.gpus_per_node + shared - 1) / shared;
}

// In a copy inside a node or a GPU: node 0. Else nodes and ports are counted over the member groups, in their order.
Port port_of(const Cluster& cluster, const Fabric& fabric, const Place& place) {
  const int port = place.gpu / std::max(1, fabric.gpus_per_port);
  if (fabric.scope != Fabric::Scope::cluster) return {0, port, port};
  int first_node = 0, nodes = 0, ports = 0;  // before the group; the last two among members
  for (int g = 0; g < place.group; ++g) {
    const NodeGroup& group = cluster.groups[g];
    first_node += group.nodes;
    if (!has_member(fabric, g)) continue;
    nodes += group.nodes;
    ports += group.nodes * ports_in(group, fabric);
  }
  const int within = place.node - first_node;
  const int per_node = ports_in(cluster.groups[place.group], fabric);
  return {nodes + within, port, ports + within * per_node + port};
}

// The fabric in the upper 8 bits, the node whose copy it is in 24, the key in 32.
std::uint64_t id_of(int fabric, int copy, std::uint32_t key) {
  return static_cast<std::uint64_t>(fabric) << 56 | static_cast<std::uint64_t>(copy) << 32 | key;
}

constexpr std::uint32_t other_end = 0x80000000U;  // bit of a key that no LinkKind has

// State of the port with this number (−1: no port). `copy`: the node, for a fabric inside nodes.
PortState state_of(const Cluster& cluster, int fabric_index, int copy, int number) {
  if (cluster.degradation.ports.empty() || number < 0) return {};
  const Fabric& fabric = cluster.fabrics[fabric_index];
  const int shared = std::max(1, fabric.gpus_per_port);
  int first_node = 0;
  if (fabric.scope != Fabric::Scope::cluster) return port_state(cluster, fabric_index, {0, copy, number * shared});
  for (int g = 0; g < static_cast<int>(cluster.groups.size()); ++g) {
    const NodeGroup& group = cluster.groups[g];
    const int ports = has_member(fabric, g) ? ports_in(group, fabric) : 0;
    if (number < group.nodes * ports)
      return port_state(cluster, fabric_index, {g, first_node + number / ports, number % ports * shared});
    number -= group.nodes * ports;
    first_node += group.nodes;
  }
  return {};
}

void add_links(const Cluster& cluster, const Way& way, int fabric, int copy, Route& route) {
  const auto add = [&](std::uint32_t key, double bandwidth, const PortState& state) {
    route.links.push_back({id_of(fabric, copy, key), bandwidth * state.share, state.period, state.down});
  };
  for (const WayLink& link : way.links) {
    const PortState near = state_of(cluster, fabric, copy, link.leaves),
                    far = state_of(cluster, fabric, copy, link.enters);
    route.healthy = std::min(route.healthy, link.bandwidth);
    const bool has_sound_end = near == PortState{} || far == PortState{};
    add(link.key, link.bandwidth, far == PortState{} ? near : far);
    if (!has_sound_end)
      add(link.key | other_end, link.bandwidth, near);  // each end sets its own limit and flaps on its own
  }
}

int node_fabric_of(const Cluster& cluster, const Place& place) {
  for (std::size_t i = 0; i < cluster.fabrics.size(); ++i)
    if (cluster.fabrics[i].scope == Fabric::Scope::node && has_member(cluster.fabrics[i], place.group))
      return static_cast<int>(i);
  throw std::invalid_argument("cluster " + cluster.name +
                              ": data shall move to another rail inside its node, but the nodes of group " +
                              std::to_string(place.group) + " have no fabric of scope node; add one");
}

void find_way(const Cluster& cluster, const Fabric& fabric, const Place& from, const Place& to, Way& way) {
  way.links.clear();
  way.hops = 0;
  way.leaves_by = -1;
  const Port a = port_of(cluster, fabric, from), b = port_of(cluster, fabric, to);
  if (fabric.topology != nullptr) return fabric.topology->route(fabric, ports_of(cluster, fabric), a, b, way);
  add_port_up(way, fabric, a);
  add_port_down(way, fabric, b);
}

// Throws where two topologies would give one key two types.
void check_parameters(const Topology& topology) {
  const auto words = [](const TopologyParameter& p) {
    return p.words != nullptr ? p.words() : std::vector<std::string_view>();
  };
  for (const TopologyParameter& own : topology.parameters)
    for (const Topology& other : registry()) {
      const TopologyParameter* theirs = parameter_named(other, own.name);
      if (theirs == nullptr) continue;
      const bool same = own.kind == theirs->kind && own.unit == theirs->unit && own.min == theirs->min &&
                        own.max == theirs->max && own.above_min == theirs->above_min && words(own) == words(*theirs);
      if (!same)
        throw std::logic_error("topologies " + topology.name + " and " + other.name + " declare the parameter '" +
                               own.name + "' with different kinds, units, ranges or words");
    }
}

const TopologyParameter& declared(const Fabric& fabric, std::string_view name) {
  const TopologyParameter* found = fabric.topology != nullptr ? parameter_named(*fabric.topology, name) : nullptr;
  if (found == nullptr)
    throw std::logic_error("topology " + (fabric.topology != nullptr ? fabric.topology->name : std::string("star")) +
                           " has no parameter '" + std::string(name) + "'");
  return *found;
}

const ParameterValue* given(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.parameters.find(name);
  return found != fabric.parameters.end() ? &found->second : nullptr;
}

double hop_latency(const Fabric& fabric) {
  const ParameterValue* value = given(fabric, "hop_latency");
  return value != nullptr ? value->number : 0;
}

}  // namespace

const std::vector<Topology>& all_topologies() { return registry(); }

const Topology* topology_named(std::string_view name) {
  for (const Topology& topology : registry())
    if (topology.name == name) return &topology;
  return nullptr;
}

RegisterTopology::RegisterTopology(Topology topology) {
  if (topology_named(topology.name) != nullptr)
    throw std::logic_error("two topologies are registered as '" + topology.name + "'");
  check_parameters(topology);
  auto& all = registry();
  const auto at = std::lower_bound(all.begin(), all.end(), topology,
                                   [](const Topology& a, const Topology& b) { return a.name < b.name; });
  all.insert(at, std::move(topology));
}

void add_port_up(Way& way, const Fabric& fabric, const Port& port) {
  way.links.push_back(
      {key_of(LinkKind::port_up, static_cast<std::uint32_t>(port.number)), fabric.bandwidth, port.number, -1});
}

void add_port_down(Way& way, const Fabric& fabric, const Port& port) {
  way.links.push_back(
      {key_of(LinkKind::port_down, static_cast<std::uint32_t>(port.number)), fabric.bandwidth, -1, port.number});
}

const TopologyParameter* parameter_named(const Topology& topology, std::string_view name) {
  for (const TopologyParameter& parameter : topology.parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

TopologyParameter shape_parameter(std::string meaning, std::string otherwise) {
  return {.name = "shape",
          .meaning = std::move(meaning),
          .otherwise = std::move(otherwise),
          .kind = TopologyParameter::Kind::integers,
          .min = 1};
}

TopologyParameter uplinks_parameter() {
  return {.name = "uplinks",
          .meaning = "links upward of one switch, per level",
          .otherwise = "by oversubscription",
          .kind = TopologyParameter::Kind::integers,
          .min = 1};
}

TopologyParameter oversubscription_parameter() {
  return {.name = "oversubscription",
          .meaning = "bandwidth below the leaf switches / above them",
          .otherwise = "1",
          .min = 1,
          .fallback = [](const Fabric&) { return 1.0; }};
}

TopologyParameter link_bandwidth_parameter() {
  return {.name = "link_bandwidth",
          .meaning = "bandwidth of one link between switches, each direction",
          .otherwise = "bandwidth of a port",
          .unit = ParameterUnit::bytes_per_second,
          .max = 1e18,
          .above_min = true,
          .fallback = [](const Fabric& fabric) { return fabric.bandwidth; }};
}

TopologyParameter global_bandwidth_parameter(std::string meaning) {
  return {.name = "global_bandwidth",
          .meaning = std::move(meaning),
          .otherwise = "link_bandwidth",
          .unit = ParameterUnit::bytes_per_second,
          .max = 1e18,
          .above_min = true,
          .fallback = link_bandwidth};
}

TopologyParameter hop_latency_parameter() {
  return {.name = "hop_latency",
          .meaning = "latency of a message for each link between switches",
          .otherwise = "0",
          .unit = ParameterUnit::seconds,
          .max = 1e3};
}

double number_of(const Fabric& fabric, std::string_view parameter) {
  if (const ParameterValue* value = given(fabric, parameter)) return value->number;
  const TopologyParameter& how = declared(fabric, parameter);
  return how.fallback != nullptr ? how.fallback(fabric) : 0;
}

const std::vector<int>& counts_of(const Fabric& fabric, std::string_view parameter) {
  static const std::vector<int> no_counts;
  if (const ParameterValue* value = given(fabric, parameter)) return value->counts;
  declared(fabric, parameter);
  return no_counts;
}

std::string_view word_of(const Fabric& fabric, std::string_view parameter) {
  const ParameterValue* value = given(fabric, parameter);
  return value != nullptr ? std::string_view(value->word) : declared(fabric, parameter).words().front();
}

double link_bandwidth(const Fabric& fabric) { return number_of(fabric, "link_bandwidth"); }

double global_bandwidth(const Fabric& fabric) { return number_of(fabric, "global_bandwidth"); }

void speed_up_parameters(Fabric& fabric, ParameterUnit unit, double speed) {
  for (auto& [name, value] : fabric.parameters) {
    if (declared(fabric, name).unit != unit) continue;
    value.number = unit == ParameterUnit::seconds ? value.number / speed : value.number * speed;
  }
}

FabricPorts ports_of(const Cluster& cluster, const Fabric& fabric) {
  FabricPorts ports;
  for (const int g : fabric.groups) {
    const NodeGroup& group = cluster.groups[g];
    const int per_node = ports_in(group, fabric);
    ports.ports_per_node = std::max(ports.ports_per_node, per_node);
    ports.nodes += group.nodes;
    ports.count += group.nodes * per_node;
  }
  if (fabric.scope != Fabric::Scope::cluster) return {1, ports.ports_per_node, ports.ports_per_node};
  return ports;
}

bool is_star(const Cluster& cluster, const Fabric& fabric) {
  if (fabric.topology == nullptr) return true;
  return fabric.topology->is_star != nullptr && fabric.topology->is_star(fabric, ports_of(cluster, fabric));
}

void find_route(const Cluster& cluster, int fabric_index, int from, int to, Route& route) {
  thread_local Way way;
  route.links.clear();
  route.cap = route.healthy = std::numeric_limits<double>::infinity();
  const Fabric& fabric = cluster.fabrics[fabric_index];
  const Place a = place_of(cluster, from), b = place_of(cluster, to);
  find_way(cluster, fabric, a, b, way);
  route.latency = fabric.latency + way.hops * hop_latency(fabric);
  const int copy = fabric.scope != Fabric::Scope::cluster ? a.node : 0, leaves_by = way.leaves_by;
  add_links(cluster, way, fabric_index, copy, route);
  if (const double share = pair_share(cluster, a.node, b.node); share < 1) route.cap = share * fabric.bandwidth;
  if (leaves_by < 0) return;
  const int shared = std::max(1, fabric.gpus_per_port);
  const Place relay{a.group, a.node, leaves_by * shared + a.gpu % shared};
  const int inside = node_fabric_of(cluster, a);
  const Fabric& node = cluster.fabrics[inside];
  find_way(cluster, node, a, relay, way);
  route.latency += node.latency + way.hops * hop_latency(node);
  add_links(cluster, way, inside, a.node, route);
}

double narrowest(const Route& route) {
  double bandwidth = route.cap;
  for (const RouteLink& link : route.links) bandwidth = std::min(bandwidth, link.bandwidth * (1 - link.down));
  return bandwidth;
}

}  // namespace slipway::models
