#include "models/machine/priced_cluster.h"

#include <algorithm>

namespace slipway::models {
namespace {

// Did `slipway calibrate` fit it to messages of this cluster?
bool is_measured(const Machine& machine, const char* number) {
  return std::ranges::any_of(machine.deviations, [&](const FittedDeviation& each) { return each.name == number; });
}

// The share of a port's bandwidth that messages get. Inside a node it is a share of what NCCL's kernels reach, which is
// below the link.
double share_of(const Machine& machine, Fabric::Scope scope) {
  if (scope == Fabric::Scope::node) return machine.constants.node_share;
  if (is_measured(machine, "network_link.efficiency")) return machine.network_link.efficiency;
  return std::min(1.0, machine.constants.network_share);
}

double hop_of(const Machine& machine, Fabric::Scope scope) {
  if (scope == Fabric::Scope::node) return 0;  // NCCL's hops are in its kernels
  return is_measured(machine, "network_link.latency") ? machine.network_link.latency : machine.constants.network_hop;
}

void set_fabric(Fabric& fabric, const std::vector<NodeGroup>& groups) {
  double bandwidth = 0, hop = 0;
  for (const int g : fabric.groups) {
    const Machine& machine = groups[g].machine;
    const bool inside = fabric.scope == Fabric::Scope::node;
    const double own = share_of(machine, fabric.scope) * (inside ? machine.node_link : machine.network_link).bandwidth;
    bandwidth = bandwidth == 0 ? own : std::min(bandwidth, own);
    hop = std::max(hop, hop_of(machine, fabric.scope));
  }
  fabric.bandwidth = bandwidth;
  fabric.latency = hop;
}

}  // namespace

bool is_priced_by_trainer(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& group) {
    return !group.machine.kernels.empty() && group.machine.blocks.empty();
  });
}

PricedCluster priced(Cluster cluster, const TrainerFacts& facts, const ConstantsOn& constants_on) {
  if (!is_priced_by_trainer(cluster)) return PricedCluster(std::move(cluster));
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
  return PricedCluster(std::move(cluster));
}

PricedCluster healthy(PricedCluster cluster) { return PricedCluster(healthy(static_cast<Cluster&&>(cluster))); }

PricedCluster at_best(PricedCluster cluster) { return PricedCluster(at_best(static_cast<Cluster&&>(cluster))); }

}  // namespace slipway::models
