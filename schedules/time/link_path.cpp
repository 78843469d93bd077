#include "schedules/time/link_path.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include "models/machine/collectives.h"
#include "models/machine/topology.h"

namespace slipway::schedules {
namespace {

// Links from rank a to rank b. `sound`: as if no port were slow and no pair of nodes weak.
Links way_between(const Cluster& cluster, int a, int b, bool sound = false) {
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
    return {fabric.latency, fabric.bandwidth};
  find_route(cluster, index, a, b, route);
  return {route.latency, sound ? route.healthy : narrowest(route)};
}

void take_slower(Links& slowest, const Links& links) {
  slowest.latency = std::max(slowest.latency, links.latency);
  slowest.bandwidth = std::min(slowest.bandwidth, links.bandwidth);
}

constexpr double unbounded = std::numeric_limits<double>::infinity();

LinkPath ring_path(const Cluster& cluster, const std::vector<std::int32_t>& ranks, bool sound = false) {
  Links slowest{0, unbounded};
  LinkPath path;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    take_slower(slowest, way_between(cluster, ranks[i], ranks[(i + 1) % ranks.size()], sound));
    const Machine& machine = cluster.groups[place_of(cluster, ranks[i]).group].machine;
    if (machine.reduce_bandwidth > 0 &&
        (path.reduce_bandwidth == 0 || machine.reduce_bandwidth < path.reduce_bandwidth)) {
      path.reduce_bandwidth = machine.reduce_bandwidth;
    }
  }
  path.latency = slowest.latency;
  path.bandwidth = slowest.bandwidth;
  path.neighbours = slowest;
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

}  // namespace

std::optional<Span> span_of(const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  Span span{0, 0, 0, {0, unbounded}, {0, unbounded}};
  std::set<int> nodes, ports;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last) {
    const int node = place_of(cluster, ranks[first]).node;
    while (last < ranks.size() && place_of(cluster, ranks[last]).node == node) ++last;
    const int members = static_cast<int>(last - first);
    if (!nodes.insert(node).second || (span.per_node != 0 && members != span.per_node)) return std::nullopt;
    span.per_node = members;
    for (std::size_t i = first + 1; i < last; ++i)
      take_slower(span.inside, way_between(cluster, ranks[i - 1], ranks[i]));
  }
  span.nodes = static_cast<int>(nodes.size());
  if (span.nodes < 2) return span.rails = 1, span;
  const std::size_t g = span.per_node, n = ranks.size();
  for (std::size_t i = 0; i < n; ++i) take_slower(span.between, way_between(cluster, ranks[i], ranks[(i + g) % n]));
  const Fabric& network = cluster.fabrics[fabric_between(cluster, ranks[0], ranks[g % n])];
  for (std::size_t i = 0; i < g; ++i)
    ports.insert(place_of(cluster, ranks[i]).gpu / std::max(1, network.gpus_per_port));
  span.rails = static_cast<int>(ports.size());
  return span;
}

namespace {

// GPUs of one node without a switch: a group reaches a share of each port. Not where the user gave the fabric's
// bandwidth.
void take_mesh(LinkPath& path, const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  if (ranks.size() < 2 || cluster.message_costs[static_cast<std::size_t>(communicator.axis)].bandwidth > 0) return;
  const Place first = place_of(cluster, ranks.front());
  for (const std::int32_t rank : ranks)
    if (place_of(cluster, rank).node != first.node) return;
  const NodeGroup& nodes = cluster.groups[first.group];
  const Fabric& fabric = cluster.fabrics[fabric_between(cluster, ranks[0], ranks[1])];
  const Link& link = nodes.machine.node_link;
  const double share = node_share(nodes, static_cast<int>(ranks.size()));
  if (share >= 1 || fabric.scope != Fabric::Scope::node || fabric.topology != nullptr ||
      fabric.bandwidth != link.bandwidth * link.efficiency)
    return;
  path.weight /= share;
  for (double* bandwidth : {&path.bandwidth, &path.neighbours.bandwidth, &path.span.inside.bandwidth})
    *bandwidth *= share;
}

LinkPath switched_path_of(const Cluster& cluster, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  LinkPath path = ring_path(cluster, ranks);
  const std::size_t axis = static_cast<std::size_t>(communicator.axis);
  const MessageCost& cost = cluster.message_costs[axis];
  if (cost.bandwidth > 0 && ranks.size() > 1) {
    const double healthy = ring_path(cluster, ranks, true).bandwidth;
    path.weight = healthy / cost.bandwidth;
    path.latency = cost.latency;
    path.bandwidth = cost.bandwidth * (path.bandwidth / healthy);  // as slow as the links
    path.neighbours = {path.latency, path.bandwidth};
    return path;
  }
  const Algorithm wanted = cluster.algorithms[axis];
  if (wanted == Algorithm::ring || communicator.axis == Axis::pipeline || ranks.size() < 2) return path;
  if (const auto span = span_of(cluster, communicator)) take_algorithm(path, wanted, *span);
  return path;
}

}  // namespace

LinkPath path_of(const Cluster& cluster, const Communicator& communicator) {
  LinkPath path = switched_path_of(cluster, communicator);
  take_mesh(path, cluster, communicator);
  return path;
}

Links links_of(const LinkPath& path, Collective collective, Algorithm algorithm) {
  if (collective == Collective::shift) return path.neighbours;
  if (algorithm == Algorithm::tree) return path.tree;
  if (collective == Collective::all_to_all && algorithm != Algorithm::ring) return pairwise_as_ring(path.span);
  return {path.latency, path.bandwidth};
}

Algorithm algorithm_of(const LinkPath& path, Collective collective, int members, double bytes) {
  if (collective == Collective::shift) return Algorithm::ring;
  if (collective == Collective::all_to_all)
    return path.algorithm == Algorithm::ring ? Algorithm::ring : Algorithm::multi_ring;
  if (collective != Collective::all_reduce || path.tree.bandwidth <= 0) return path.algorithm;
  if (!path.chooses) return Algorithm::tree;
  const auto seconds = [&](const Links& links) {
    return ring_seconds(collective, members, bytes, links.latency, links.bandwidth, 0);
  };
  return seconds(path.tree) < seconds({path.latency, path.bandwidth}) ? Algorithm::tree : path.algorithm;
}

double collective_seconds(const LinkPath& path, Collective collective, int members, double bytes) {
  const Links links = links_of(path, collective, algorithm_of(path, collective, members, bytes));
  return ring_seconds(collective, members, bytes, links.latency, links.bandwidth, path.reduce_bandwidth);
}

}  // namespace slipway::schedules
