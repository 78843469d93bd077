#include "models/machine/machine.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace slipway::models {
namespace {

std::string describe(const Place& place) {
  return "group " + std::to_string(place.group) + ", node " + std::to_string(place.node) + ", GPU " +
         std::to_string(place.gpu);
}

Fabric fabric_of(const Link& link, Fabric::Scope scope, int group) {
  Fabric fabric;
  fabric.name = link.name;
  fabric.scope = scope;
  fabric.groups = {group};
  fabric.bandwidth = link.bandwidth * link.efficiency;
  fabric.latency = link.latency;
  return fabric;
}

}  // namespace

bool awaits_calibration(const Machine& machine) {
  return machine.cores > 0 &&
         std::all_of(machine.peak_flops.begin(), machine.peak_flops.end(), [](double peak) { return peak <= 0; });
}

bool are_processors(const std::vector<NodeGroup>& groups) {
  return !groups.empty() &&
         std::all_of(groups.begin(), groups.end(), [](const NodeGroup& group) { return group.machine.cores > 0; });
}

std::vector<Fabric> default_fabrics(const std::vector<NodeGroup>& groups) {
  std::vector<Fabric> fabrics;
  int nodes = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    nodes += groups[i].nodes;
    if (groups[i].gpus_per_node > 1)
      fabrics.push_back(fabric_of(groups[i].machine.node_link, Fabric::Scope::node, static_cast<int>(i)));
  }
  if (nodes < 2) return fabrics;
  Fabric network = fabric_of(groups.front().machine.network_link, Fabric::Scope::cluster, 0);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const Link& link = groups[i].machine.network_link;
    network.groups.push_back(static_cast<int>(i));
    network.bandwidth = std::min(network.bandwidth, link.bandwidth * link.efficiency);
    network.latency = std::max(network.latency, link.latency);
  }
  if (are_processors(groups))
    for (const NodeGroup& group : groups) network.gpus_per_port = std::max(network.gpus_per_port, group.gpus_per_node);
  fabrics.push_back(network);
  return fabrics;
}

double node_share(const NodeGroup& nodes, int members) {
  constexpr int largest_mesh = 8;  // DGX-1's cube; DGX-2 has switches
  const int others = nodes.machine.node_link.mesh - 1;
  if (others < 1 || nodes.gpus_per_node > largest_mesh) return 1;
  return std::min(1.0, static_cast<double>(members - 1) / others);
}

Cluster with_machines(Cluster cluster, const std::vector<Machine>& machines) {
  for (std::size_t g = 0; g < machines.size(); ++g) cluster.groups[g].machine = machines[g];
  for (const Fabric& links : default_fabrics(cluster.groups))
    for (Fabric& fabric : cluster.fabrics)
      if (!fabric.own && fabric.scope == links.scope && fabric.name == links.name)
        fabric.bandwidth = links.bandwidth, fabric.latency = links.latency;
  return cluster;
}

double* fitted_number(Machine& machine, std::string_view name) {
  struct Number {
    std::string_view name;
    double Machine::*value;
  };
  constexpr Number numbers[] = {{"gemm_efficiency", &Machine::gemm_efficiency},
                                {"gemm_half", &Machine::gemm_half},
                                {"attention_efficiency", &Machine::attention_efficiency},
                                {"memory_bandwidth", &Machine::memory_bandwidth},
                                {"memory_efficiency", &Machine::memory_efficiency},
                                {"launch_overhead", &Machine::launch_overhead},
                                {"task_overhead", &Machine::task_overhead},
                                {"overlap_slowdown", &Machine::overlap_slowdown},
                                {"reduce_bandwidth", &Machine::reduce_bandwidth}};
  for (const Number& number : numbers)
    if (number.name == name) return &(machine.*number.value);
  struct NamedLink {
    std::string_view name;
    Link Machine::*link;
  };
  constexpr NamedLink links[] = {{"node_link.", &Machine::node_link},
                                 {"network_link.", &Machine::network_link},
                                 {"host_to_device.", &Machine::host_to_device},
                                 {"device_to_host.", &Machine::device_to_host}};
  for (const NamedLink& each : links) {
    if (!name.starts_with(each.name)) continue;
    Link& link = machine.*each.link;
    const std::string_view what = name.substr(each.name.size());
    return what == "bandwidth"    ? &link.bandwidth
           : what == "efficiency" ? &link.efficiency
           : what == "latency"    ? &link.latency
                                  : nullptr;
  }
  return nullptr;
}

std::vector<Fabric> shared_gpu_fabrics(const std::vector<NodeGroup>& groups) {
  std::vector<Fabric> fabrics;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Machine& machine = groups[i].machine;
    const Link copies{"copies in memory", machine.memory_bandwidth / 2, machine.launch_overhead,
                      machine.memory_efficiency};
    fabrics.push_back(fabric_of(copies, Fabric::Scope::gpu, static_cast<int>(i)));
  }
  return fabrics;
}

int gpu_count(const Cluster& cluster) {
  int gpus = 0;
  for (const NodeGroup& group : cluster.groups) gpus += group.nodes * group.gpus_per_node;
  return gpus;
}

bool computes_in(const Cluster& cluster, Dtype dtype) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return awaits_calibration(group.machine) || group.machine.peak_flops[static_cast<std::size_t>(dtype)] > 0;
  });
}

int node_count(const Cluster& cluster) {
  int nodes = 0;
  for (const NodeGroup& group : cluster.groups) nodes += group.nodes;
  return nodes;
}

int group_of_node(const Cluster& cluster, int node) {
  int left = node;
  for (std::size_t i = 0; i < cluster.groups.size() && left >= 0; left -= cluster.groups[i++].nodes)
    if (left < cluster.groups[i].nodes) return static_cast<int>(i);
  throw std::invalid_argument("cluster " + cluster.name + " has nodes 0.." + std::to_string(node_count(cluster) - 1) +
                              ", no node " + std::to_string(node));
}

std::vector<int> gpus_in_order(const Cluster& cluster, const std::vector<int>& nodes) {
  std::vector<int> first_gpu, gpus;  // of each node, and its end
  int next = 0;
  for (const NodeGroup& group : cluster.groups)
    for (int i = 0; i < group.nodes; ++i, next += group.gpus_per_node) first_gpu.push_back(next);
  first_gpu.push_back(next);
  for (const int node : nodes) {
    const auto at = static_cast<std::size_t>(node);
    for (int gpu = first_gpu.at(at); gpu < first_gpu.at(at + 1); ++gpu)
      gpus.insert(gpus.end(), static_cast<std::size_t>(cluster.ranks_per_gpu), gpu);
  }
  return gpus;
}

int rank_capacity(const Cluster& cluster) {
  return cluster.gpu_of_rank.empty() ? gpu_count(cluster) * cluster.ranks_per_gpu
                                     : static_cast<int>(cluster.gpu_of_rank.size());
}

int gpu_of(const Cluster& cluster, int rank) {
  const int ranks = rank_capacity(cluster);
  if (rank < 0 || rank >= ranks)
    throw std::invalid_argument("cluster " + cluster.name + " has ranks 0.." + std::to_string(ranks - 1) +
                                ", no rank " + std::to_string(rank) + "; add nodes or use fewer ranks");
  return cluster.gpu_of_rank.empty() ? rank / cluster.ranks_per_gpu : cluster.gpu_of_rank[rank];
}

Place place_of(const Cluster& cluster, int rank) {
  int gpu = gpu_of(cluster, rank);
  int first_node = 0;  // of the present group
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    const NodeGroup& group = cluster.groups[i];
    if (gpu < group.nodes * group.gpus_per_node)
      return {static_cast<int>(i), first_node + gpu / group.gpus_per_node, gpu % group.gpus_per_node};
    gpu -= group.nodes * group.gpus_per_node;
    first_node += group.nodes;
  }
  throw std::logic_error("gpu_of_rank names a GPU that the cluster does not have");
}

bool has_member(const Fabric& fabric, int group) {
  return std::find(fabric.groups.begin(), fabric.groups.end(), group) != fabric.groups.end();
}

bool connects(const Fabric& fabric, const Place& a, const Place& b) {
  if (!has_member(fabric, a.group) || !has_member(fabric, b.group)) return false;
  if (fabric.scope == Fabric::Scope::cluster) return true;
  return a.node == b.node && (fabric.scope == Fabric::Scope::node || a.gpu == b.gpu);
}

int fabric_between(const Cluster& cluster, int rank_a, int rank_b) {
  const Place a = place_of(cluster, rank_a), b = place_of(cluster, rank_b);
  for (Fabric::Scope scope : {Fabric::Scope::gpu, Fabric::Scope::node, Fabric::Scope::cluster})
    for (std::size_t i = 0; i < cluster.fabrics.size(); ++i)
      if (cluster.fabrics[i].scope == scope && connects(cluster.fabrics[i], a, b)) return static_cast<int>(i);
  throw std::invalid_argument("cluster " + cluster.name + ": no fabric connects rank " + std::to_string(rank_a) + " (" +
                              describe(a) + ") with rank " + std::to_string(rank_b) + " (" + describe(b) +
                              "); add a fabric that both node groups are members of");
}

std::optional<int> ranks_per_node(const Cluster& cluster, const std::vector<std::int32_t>& ranks) {
  std::set<int> nodes;
  std::size_t per_node = 0;
  for (std::size_t first = 0, last = 0; first < ranks.size(); first = last) {
    const int node = place_of(cluster, ranks[first]).node;
    while (last < ranks.size() && place_of(cluster, ranks[last]).node == node) ++last;
    if (!nodes.insert(node).second || (per_node != 0 && last - first != per_node)) return std::nullopt;
    per_node = last - first;
  }
  return static_cast<int>(per_node);
}

}  // namespace slipway::models
