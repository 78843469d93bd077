#include "schedules/time/link_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "models/machine/collectives.h"
#include "models/machine/gloo.h"
#include "models/machine/ring.h"
#include "models/machine/topology.h"

namespace slipway::schedules {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

// Links from rank a to rank b, and the most bytes/s of one message, where their nodes are a weak pair. Other messages on
// the same ports have what it leaves.
struct WayBetween : Links {
  double cap = unbounded;
};
WayBetween way_between(const Cluster& cluster, int a, int b) {
  thread_local Route route;
  const int index = fabric_between(cluster, a, b);
  const Fabric& fabric = cluster.fabrics[index];
  if (!(fabric.bandwidth > 0) || !(fabric.latency >= 0)) {
    const Machine& machine = cluster.groups[place_of(cluster, a).group].machine;
    throw std::invalid_argument("the fabric " + (fabric.name.empty() ? "of machine " + machine.name : fabric.name) +
                                " between ranks " + std::to_string(a) + " and " + std::to_string(b) +
                                " has no bandwidth; give it one, or let `slipway calibrate` measure it");
  }
  if (fabric.topology == nullptr && cluster.degradation.ports.empty() && cluster.weak_pairs.empty())
    return {{fabric.latency, fabric.bandwidth}};
  find_route(cluster, index, a, b, route);
  const double cap = std::exchange(route.cap, unbounded);
  return {{route.latency, narrowest(route)}, cap};
}

void take_slower(Links& slowest, const Links& links) {
  slowest.latency = std::max(slowest.latency, links.latency);
  slowest.bandwidth = std::min(slowest.bandwidth, links.bandwidth);
}

// Least of the caps between any two of the ranks.
double least_cap(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  if (cluster.weak_pairs.empty()) return unbounded;
  std::map<int, std::int32_t> of_node;
  for (const std::int32_t rank : ranks) of_node.emplace(place_of(cluster, rank).node, rank);
  double cap = unbounded;
  for (const WeakPair& pair : cluster.weak_pairs) {
    const auto a = of_node.find(pair.node_a), b = of_node.find(pair.node_b);
    if (a != of_node.end() && b != of_node.end()) cap = std::min(cap, way_between(cluster, a->second, b->second).cap);
  }
  return cap;
}

// `closes`: the last rank sends to the first. `share`: of each port.
LinkPath ring_path(const Cluster& cluster, const std::vector<std::int32_t>& ranks, bool closes, double share) {
  Links slowest{0, unbounded}, ports = slowest;
  LinkPath path;
  const std::size_t messages = closes || ranks.size() < 2 ? ranks.size() : ranks.size() - 1;
  for (std::size_t i = 0; i < messages; ++i) {
    WayBetween way = way_between(cluster, ranks[i], ranks[(i + 1) % ranks.size()]);
    way.bandwidth *= share;
    take_slower(slowest, {way.latency, std::min(way.bandwidth, way.cap)});
    take_slower(ports, way);
    const Machine& machine = cluster.groups[place_of(cluster, ranks[i]).group].machine;
    if (machine.reduce_bandwidth > 0 &&
        (path.reduce_bandwidth == 0 || machine.reduce_bandwidth < path.reduce_bandwidth)) {
      path.reduce_bandwidth = machine.reduce_bandwidth;
    }
  }
  path.latency = slowest.latency;
  path.bandwidth = slowest.bandwidth;
  path.neighbours = slowest;
  if (const double cap = least_cap(cluster, ranks); cap < unbounded)  // an all-to-all has a message for each mate
    path.pairs = {ports.latency, std::min(ports.bandwidth, static_cast<double>(ranks.size() - 1) * cap)};
  return path;
}

void take_algorithm(LinkPath& path, Algorithm wanted, const Span& span) {
  path.span = span;
  path.chooses = wanted == Algorithm::nccl;
  const bool trees = (path.chooses || wanted == Algorithm::tree) && span.nodes > 1;
  if (trees) path.tree = as_ring(Algorithm::tree, span);
  const bool two_levels = span.nodes > 1 && span.per_node > 1;
  path.algorithm = wanted == Algorithm::hierarchical && two_levels ? Algorithm::hierarchical : Algorithm::multi_ring;
  const Links links = as_ring(path.algorithm, span);
  path.latency = links.latency;
  path.bandwidth = links.bandwidth;
}

// Caps of the messages between nodes: to the next node, along the trees, and of all pairs.
void take_caps(Span& span, const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  const auto cap_of = [&](int from, int to) {
    return way_between(cluster, ranks[static_cast<std::size_t>(from * span.per_node)],
                       ranks[static_cast<std::size_t>(to * span.per_node)])
        .cap;
  };
  for (int node = 0; node < span.nodes; ++node)
    span.next_cap = std::min(span.next_cap, cap_of(node, (node + 1) % span.nodes));
  for (const std::vector<int>& parent : double_binary_tree(span.nodes).parent)
    for (int node = 0; node < span.nodes; ++node)
      if (const auto above = parent[static_cast<std::size_t>(node)]; above >= 0)
        span.tree_cap = std::min(span.tree_cap, cap_of(node, above));
  span.pair_cap = least_cap(cluster, ranks);
}

bool are_on_several_nodes(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  const int first = place_of(cluster, ranks.front()).node;
  return std::ranges::any_of(ranks, [&](std::int32_t rank) { return place_of(cluster, rank).node != first; });
}

// The machine with the slowest ports of the members'; nullptr where one of them has no measured collectives.
const Machine* measured_machine(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  const Machine* slowest = nullptr;
  const auto ports = [](const Machine& machine) {
    return std::pair(machine.node_link.bandwidth, machine.network_link.bandwidth);
  };
  for (const std::int32_t rank : ranks) {
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    if (!machine.trained) return nullptr;
    if (slowest == nullptr || ports(machine) < ports(*slowest)) slowest = &machine;
  }
  return slowest;
}

// The members that stand for their groups of nodes: the first of each.
std::vector<std::int32_t> one_of_each_group(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  std::vector<std::int32_t> first;
  std::set<int> groups;
  for (const std::int32_t rank : ranks)
    if (groups.insert(place_of(cluster, rank).group).second) first.push_back(rank);
  return first;
}

const CollectiveConstants* nccl_of(const LinkPath& path, Collective collective) {
  if (path.measured == nullptr) return nullptr;
  const auto& all = path.measured->kernels.collective;
  const auto& own = all[static_cast<std::size_t>(collective)];
  if (own) return &*own;
  const auto& gather = all[static_cast<std::size_t>(Collective::all_gather)];  // of messages that NCCL sends as simply
  return gather ? &*gather : nullptr;
}

// GPUs that share a port of the network with this one, and have ranks.
int gpus_on_port(const Cluster& cluster, const Fabric& network, const Place& place) {
  const int most = std::min(std::max(1, network.gpus_per_port), cluster.groups[place.group].gpus_per_node);
  if (most == 1 || cluster.gpu_of_rank.empty()) return most;
  std::set<int> gpus;
  for (std::size_t rank = 0; rank < cluster.gpu_of_rank.size(); ++rank) {
    const Place other = place_of(cluster, static_cast<int>(rank));
    if (other.node == place.node && other.gpu / most == place.gpu / most) gpus.insert(other.gpu);
  }
  return static_cast<int>(gpus.size());
}

// The part of a port to other nodes that each GPU of a node has, where messages are priced by measured ones. The least
// over unlike nodes.
double port_share_of(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  if (ranks.size() < 2 || measured_machine(cluster, ranks) == nullptr || !are_on_several_nodes(cluster, ranks))
    return 1;
  const Fabric& network = cluster.fabrics[fabric_between(cluster, ranks.front(), ranks.back())];
  int most = 1;
  for (const std::int32_t rank : one_of_each_group(cluster, ranks))
    most = std::max(most, gpus_on_port(cluster, network, place_of(cluster, rank)));
  return 1.0 / most;
}

void take_starts(LinkPath& path, const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  path.measured = measured_machine(cluster, ranks);
  if (path.measured == nullptr || ranks.size() < 2) return;
  const auto start = are_on_several_nodes(cluster, ranks) ? &StepConstants::network_start : &StepConstants::node_start;
  for (const std::int32_t rank : one_of_each_group(cluster, ranks))
    path.start = std::max(path.start, cluster.groups[place_of(cluster, rank).group].machine.constants.*start);
}

// GPUs of one node without a switch: a group reaches a share of each port. Not where the user gave the fabric's
// bandwidth.
void take_mesh(LinkPath& path, const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  if (ranks.size() < 2) return;
  const Place first = place_of(cluster, ranks.front());
  for (const std::int32_t rank : ranks)
    if (place_of(cluster, rank).node != first.node) return;
  const NodeGroup& nodes = cluster.groups[first.group];
  const Fabric& fabric = cluster.fabrics[fabric_between(cluster, ranks[0], ranks[1])];
  const double share = node_share(nodes, static_cast<int>(ranks.size()));
  if (share >= 1 || fabric.scope != Fabric::Scope::node || fabric.topology != nullptr || fabric.own) return;
  path.weight /= share;
  for (double* bandwidth : {&path.bandwidth, &path.neighbours.bandwidth, &path.span.inside.bandwidth})
    *bandwidth *= share;
}

// As pairwise_as_ring, for members that lie unevenly on the nodes: the busiest port, and the most latency of a member.
// `each_between`: latencies of a message between nodes.
Links links_of_pairs(const Cluster& cluster, const std::vector<std::int32_t>& ranks, double each_between = 1) {
  std::map<std::array<int, 4>, double> busy;  // seconds per byte to each mate: fabric, node, port, direction
  double latency = 0, most = 0;
  const auto add = [&](int fabric, const Place& place, int direction, double seconds) {
    const int port = place.gpu / std::max(1, cluster.fabrics[fabric].gpus_per_port);
    most = std::max(most, busy[{fabric, place.node, port, direction}] += seconds);
  };
  for (const std::int32_t from : ranks) {
    double of_member = 0;
    for (const std::int32_t to : ranks) {
      if (from == to) continue;
      const WayBetween way = way_between(cluster, from, to);
      most = std::max(most, 1 / way.cap);
      const int fabric = fabric_between(cluster, from, to);
      const bool inside = place_of(cluster, from).node == place_of(cluster, to).node;
      of_member += way.latency * (inside ? 1 : each_between);
      add(fabric, place_of(cluster, from), 0, 1 / way.bandwidth);
      add(fabric, place_of(cluster, to), 1, 1 / way.bandwidth);
    }
    latency = std::max(latency, of_member);
  }
  const double mates = static_cast<double>(ranks.size()) - 1;
  return {latency / mates, mates / most};
}

LinkPath switched_path_of(const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  const double share = port_share_of(cluster, ranks);
  LinkPath path = ring_path(cluster, ranks, communicator.axis != Axis::pipeline, share);
  path.port_share = share;
  take_starts(path, cluster, ranks);
  const bool in_pairs = communicator.axis == Axis::expert;
  Algorithm wanted = cluster.algorithms[static_cast<std::size_t>(communicator.axis)];
  if (in_pairs && (wanted == Algorithm::ring || wanted == Algorithm::gloo))
    wanted = Algorithm::multi_ring;  // on all ports, whatever rings use
  if (wanted == Algorithm::ring || communicator.axis == Axis::pipeline || ranks.size() < 2) return path;
  if (wanted == Algorithm::gloo) {
    path.algorithm = wanted;
    path.pairs = links_of_pairs(cluster, ranks, latencies_per_round);
    if (are_on_several_nodes(cluster, ranks))
      path.latency *= latencies_per_round, path.neighbours.latency *= latencies_per_round;
    return path;
  }
  if (const auto span = span_of(cluster, communicator)) {
    take_algorithm(path, wanted, *span);
    if (in_pairs) path.routes = route_bytes(communicator.tokens, span->nodes, span->per_node);
  } else if (in_pairs) {
    path.pairs = links_of_pairs(cluster, ranks);
  }
  return path;
}

LinkPath host_path(const Cluster& cluster, const Communicator& communicator) {
  const Machine& machine = cluster.groups[place_of(cluster, communicator.ranks.front()).group].machine;
  const Link& link = communicator.name == "to_host" ? machine.device_to_host : machine.host_to_device;
  LinkPath path;
  path.latency = link.latency;
  path.bandwidth = link.bandwidth * link.efficiency;
  return path;
}

bool is_direct(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter ||
         collective == Collective::all_to_all;
}

}  // namespace

std::optional<Span> span_of(const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  const std::optional<int> per_node = ranks_per_node(cluster, ranks);
  if (!per_node) return std::nullopt;
  const std::size_t n = ranks.size(), g = static_cast<std::size_t>(*per_node);
  Span span{static_cast<int>(n / g), *per_node, 0, {0, unbounded}, {0, unbounded}};
  for (std::size_t i = 1; i < n; ++i)
    if (i % g != 0) take_slower(span.inside, way_between(cluster, ranks[i - 1], ranks[i]));
  if (span.nodes < 2) return span.rails = 1, span;
  std::set<int> ports;
  for (std::size_t i = 0; i < n; ++i) take_slower(span.between, way_between(cluster, ranks[i], ranks[(i + g) % n]));
  const Fabric& network = cluster.fabrics[fabric_between(cluster, ranks[0], ranks[g % n])];
  for (std::size_t i = 0; i < g; ++i)
    ports.insert(place_of(cluster, ranks[i]).gpu / std::max(1, network.gpus_per_port));
  span.rails = static_cast<int>(ports.size());
  if (!cluster.weak_pairs.empty()) take_caps(span, cluster, ranks);
  return span;
}

LinkPath path_of(const PricedCluster& cluster, const Communicator& communicator) {
  if (communicator.axis == Axis::host) return host_path(cluster, communicator);
  LinkPath path = switched_path_of(cluster, communicator);
  take_mesh(path, cluster, communicator);
  return path;
}

Span measured_span(const LinkPath& path, Collective collective) {
  Span span = path.span;
  // The other GPUs of a node use their ports at the same time: each has its share.
  if (span.nodes > 1) span.between.bandwidth *= std::min(1.0, span.per_node * path.port_share / span.rails);
  if (const CollectiveConstants* nccl = nccl_of(path, collective)) {
    const bool own_kernels = collective == Collective::all_to_all && path.routes != RouteBytes{};
    if (!own_kernels) span.inside.bandwidth *= nccl->share;  // RouteBytes has what other kernels reach
    span.inside.latency = collective == Collective::all_reduce ? nccl->hop / 2 : nccl->hop;
  }
  return span;
}

Links links_of(const LinkPath& path, Collective collective, Algorithm algorithm) {
  if (collective == Collective::shift) return path.neighbours;
  if (algorithm == Algorithm::gloo) return path.pairs;
  if (path.measured != nullptr && path.span.members() > 1 && algorithm != Algorithm::ring) {
    const Span span = measured_span(path, collective);
    if (algorithm == Algorithm::tree) return as_ring(algorithm, span);
    return collective == Collective::all_to_all ? pairwise_as_ring(span, path.routes.inside, path.routes.between)
                                                : as_ring(algorithm, span);
  }
  if (algorithm == Algorithm::tree) return path.tree;
  if (collective == Collective::all_to_all && algorithm != Algorithm::ring)
    return pairwise_as_ring(path.span, path.routes.inside, path.routes.between);
  if (collective == Collective::all_to_all && path.pairs.bandwidth > 0) return path.pairs;
  return {path.latency, path.bandwidth};
}

Algorithm algorithm_of(const LinkPath& path, Collective collective, int members, double bytes) {
  if (collective == Collective::shift) return Algorithm::ring;
  if (path.algorithm == Algorithm::gloo) return is_direct(collective) ? Algorithm::gloo : Algorithm::ring;
  if (collective == Collective::all_to_all)
    return path.algorithm == Algorithm::ring ? Algorithm::ring : Algorithm::multi_ring;
  if (collective != Collective::all_reduce || path.tree.bandwidth <= 0) return path.algorithm;
  if (!path.chooses) return Algorithm::tree;
  const auto seconds = [&](const Links& links) {
    return ring_seconds(collective, members, bytes, links.latency, links.bandwidth, 0);
  };
  return seconds(path.tree) < seconds({path.latency, path.bandwidth}) ? Algorithm::tree : path.algorithm;
}

double start_seconds(const LinkPath& path, Collective collective, int members, double bytes) {
  if (members < 2) return 0;
  const CollectiveConstants* nccl = nccl_of(path, collective);
  if (nccl == nullptr || collective == Collective::shift || collective == Collective::send) return path.start;
  double seconds = path.start + nccl->launch;
  if (path.span.per_node < 2 || path.algorithm == Algorithm::ring) return seconds;
  const RingTraffic traffic = ring_traffic(collective, path.span.per_node, bytes);
  return seconds + nccl->own * bytes / members / path.span.inside.bandwidth +
         nccl->ramp * std::sqrt(traffic.bytes_per_link);
}

double collective_seconds(const LinkPath& path, Collective collective, int members, double bytes) {
  const Links links = links_of(path, collective, algorithm_of(path, collective, members, bytes));
  return start_seconds(path, collective, members, bytes) +
         ring_seconds(collective, members, bytes, links.latency, links.bandwidth, path.reduce_bandwidth);
}

}  // namespace slipway::schedules
