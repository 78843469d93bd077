// Rails: GPU i of each node is on leaf switch i of its unit, so the ring of GPUs i never leaves that leaf. (NVIDIA DGX
// SuperPOD reference architectures; Wang et al. 2023, "Rail-only".)
//
//   node 0   g0 g1 g2 g3        shape [2]: 2 nodes on the leaves of a unit; a unit has a leaf per rail
//   node 1   g0 g1 g2 g3
//            │  │  │  │
//        leaf 0  1  2  3   ═► core ═►  leaves of the other units
//
// Same rail and unit: through the leaf alone. Same rail, other unit: leaf ═► core ═► leaf. Another rail: over the core.
// Where messages move inside (NCCL's PXN, release notes of 2.12): over the node's own fabric to the GPU of the
// destination's rail, and from there along that rail.
#include <algorithm>

#include "models/machine/topology.h"

namespace slipway::models {
namespace {

bool moves_inside(const Fabric& fabric) { return word_of(fabric, "crossing") == "node"; }

Topology::Misfit refuse(const Fabric& fabric, const FabricPorts&) {
  const std::vector<int>& uplinks = counts_of(fabric, "uplinks");
  if (fabric.scope == Fabric::Scope::node)
    return {"kind", "rails join nodes, but the fabric's scope is node; allowed: in fabrics of scope cluster",
            "choose pcie or star"};
  if (counts_of(fabric, "shape").size() > 1)
    return {"shape", "rails have one number; allowed: [nodes per unit]", "keep the first number"};
  if (uplinks.size() > 1)
    return {"uplinks", "only the leaves have uplinks; allowed: one number", "keep the first number"};
  if (!uplinks.empty() && number_of(fabric, "oversubscription") != 1)
    return {"oversubscription", "uplinks are given as well, and say the same; allowed: one of them",
            "leave one of the two out"};
  return {};
}

// Messages to other rails move inside the node where nodes have a fabric, and then all nodes need one.
Topology::Misfit settle(const Cluster& cluster, Fabric& fabric) {
  const auto has_inside = [&](int group) {
    return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(), [&](const Fabric& each) {
      return each.scope == Fabric::Scope::node && (group < 0 || has_member(each, group));
    });
  };
  if (!fabric.parameters.contains("crossing")) fabric.parameters["crossing"] = has_inside(-1) ? "node" : "core";
  if (!moves_inside(fabric)) return {};
  for (const int group : fabric.groups)
    if (cluster.groups[group].gpus_per_node > 1 && !has_inside(group))
      return {"crossing",
              "data shall move through the node, but the nodes of group " + std::to_string(group) +
                  " have no fabric; allowed: node with a fabric of scope node, or core",
              "add '- scope: node' to fabrics, or write crossing: core"};
  return {};
}

// bytes/s that a leaf takes from below, and bytes/s of all its uplinks.
struct Leaf {
  double below = 0, above = 0;
};
int nodes_of_unit(const Fabric& fabric, const FabricPorts& ports) {
  const std::vector<int>& shape = counts_of(fabric, "shape");
  return shape.empty() ? ports.nodes : shape.front();
}
Leaf leaf_of(const Fabric& fabric, const FabricPorts& ports) {
  const std::vector<int>& uplinks = counts_of(fabric, "uplinks");
  const double below = nodes_of_unit(fabric, ports) * fabric.bandwidth;
  return {below,
          uplinks.empty() ? below / number_of(fabric, "oversubscription") : uplinks.front() * link_bandwidth(fabric)};
}

void route(const Fabric& fabric, const FabricPorts& ports, const Port& from, const Port& to, Way& way) {
  const int unit = nodes_of_unit(fabric, ports);
  int rail = from.port;
  if (rail != to.port && moves_inside(fabric) && from.node != to.node) way.leaves_by = rail = to.port;
  Port source = from;
  source.number += rail - from.port;
  source.port = rail;
  add_port_up(way, fabric, source);
  const int up = from.node / unit * ports.ports_per_node + rail;
  const int down = to.node / unit * ports.ports_per_node + to.port;
  if (up != down) {
    way.hops = 2;
    if (const auto [below, above] = leaf_of(fabric, ports); above < below) {
      way.links.push_back({key_of(LinkKind::inner, static_cast<std::uint32_t>(up)), above});
      way.links.push_back({key_of(LinkKind::inner_down, static_cast<std::uint32_t>(down)), above});
    }
  }
  add_port_down(way, fabric, to);
}

bool is_star(const Fabric& fabric, const FabricPorts& ports) {
  const auto [below, above] = leaf_of(fabric, ports);
  return above >= below && !moves_inside(fabric) && number_of(fabric, "hop_latency") == 0;
}

const RegisterTopology registered{
    {.name = "rail-optimised",
     .summary = "GPU i of every node on leaf switch i; other rails over the core or through the node first (PXN)",
     .parameters = {shape_parameter("nodes per unit", "all nodes"),
                    uplinks_parameter(),
                    oversubscription_parameter(),
                    link_bandwidth_parameter(),
                    hop_latency_parameter(),
                    {.name = "crossing",
                     .meaning = "way to another rail: over the core, or through the node first",
                     .otherwise = "node where nodes have a fabric, else core",
                     .kind = TopologyParameter::Kind::word,
                     .words =
                         [] {
                           return std::vector<std::string_view>{"core", "node"};
                         }}},
     .refuse = refuse,
     .settle = settle,
     .route = route,
     .is_star = is_star}};

}  // namespace
}  // namespace slipway::models
