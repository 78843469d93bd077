#include "models/machine/trained_cluster.h"

#include <algorithm>

namespace slipway::models {
namespace {

// Rounds inside a node are NCCL's hops, rounds between nodes the step's.
void set_fabric(Fabric& fabric, const std::vector<NodeGroup>& groups) {
  double bandwidth = 0, hop = 0;
  for (const int g : fabric.groups) {
    const Machine& machine = groups[g].machine;
    const bool inside = fabric.scope == Fabric::Scope::node;
    const double share = inside ? machine.constants.node_share : machine.constants.network_share;
    const double own = share * (inside ? machine.node_link : machine.network_link).bandwidth;
    bandwidth = bandwidth == 0 ? own : std::min(bandwidth, own);
    hop = std::max(hop, inside ? 0 : machine.constants.network_hop);
  }
  fabric.bandwidth = bandwidth;
  fabric.latency = hop;
}

}  // namespace

bool has_kernels(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& group) {
    return !group.machine.kernels.empty() && group.machine.blocks.empty();
  });
}

Cluster trained(Cluster cluster, const TrainerFacts& facts, const ConstantsOn& constants_on) {
  if (!has_kernels(cluster)) return cluster;
  for (NodeGroup& group : cluster.groups) {
    group.machine.trained = true;
    group.machine.trainer = facts;
    group.machine.constants = constants_on(group.machine);
    group.machine.overlap_slowdown = 1;  // `beside` is what products lose to messages
  }
  for (Fabric& fabric : cluster.fabrics)
    if (fabric.scope != Fabric::Scope::gpu && !fabric.own) set_fabric(fabric, cluster.groups);
  if (!cluster.own_algorithms)
    for (std::size_t axis = 0; axis + 1 < cluster.algorithms.size(); ++axis) cluster.algorithms[axis] = Algorithm::nccl;
  return cluster;
}

}  // namespace slipway::models
