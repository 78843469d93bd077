// A node without NVLink: GPUs behind PCIe switches behind the host bridges of its processors.
//
//   processor 0 ═══ processor 1         shape [2, 2]: 2 GPUs on a switch, 2 switches on a host bridge
//     ║     ║         ║     ║
//    sw    sw        sw    sw           ═  shared: an uplink is as wide as one GPU's link, whatever hangs below
//    g g   g g       g g   g g
//
// GPUs of one switch reach each other through it. Others cross the uplinks, and those of different processors also the
// link between them. link_bandwidth: of a switch's uplink; global_bandwidth: between two processors (Li et al. 2020,
// "Evaluating modern GPU interconnect", has measured ones).
#include "models/machine/topology.h"

namespace slipway::models {
namespace {

Topology::Misfit refuse(const Fabric& fabric, const FabricPorts&) {
  const std::vector<int>& shape = counts_of(fabric, "shape");
  if (fabric.scope != Fabric::Scope::node)
    return {"kind", "PCIe joins the GPUs of a node, but the fabric's scope is cluster; allowed: scope node",
            "choose a topology between nodes, or scope: node"};
  if (shape.empty() || shape.size() > 2)
    return {"shape", "a PCIe node has one or two numbers; allowed: [GPUs per switch, switches per host bridge]",
            "add for example 'shape: [2, 2]'"};
  return {};
}

void route(const Fabric& fabric, const FabricPorts& ports, const Port& from, const Port& to, Way& way) {
  const std::vector<int>& shape = counts_of(fabric, "shape");
  const int a = from.number / shape[0], b = to.number / shape[0];  // switches
  const auto add = [&](LinkKind kind, int index, double bandwidth) {
    way.links.push_back({key_of(kind, static_cast<std::uint32_t>(index)), bandwidth});
    ++way.hops;
  };
  add_port_up(way, fabric, from);
  if (a != b) {
    add(LinkKind::inner, a, link_bandwidth(fabric));
    const int here = shape.size() > 1 ? a / shape[1] : 0, there = shape.size() > 1 ? b / shape[1] : 0;
    if (here != there) add(LinkKind::long_link, here * ports.count + there, global_bandwidth(fabric));
    add(LinkKind::inner_down, b, link_bandwidth(fabric));
  }
  add_port_down(way, fabric, to);
}

const RegisterTopology registered{
    {.name = "pcie",
     .summary = "GPUs of a node behind PCIe switches behind host bridges, whose uplinks they share",
     .parameters = {shape_parameter("GPUs per switch, switches per host bridge"), link_bandwidth_parameter(),
                    global_bandwidth_parameter("bandwidth of the link between two processors"),
                    hop_latency_parameter()},
     .refuse = refuse,
     .route = route}};

}  // namespace
}  // namespace slipway::models
