// Dragonfly: groups of routers; inside a group every router has a link to every other, and every two groups
// are joined by at least one global link. Kim, Dally, Scott and Abts 2008.
//
//   group 0  r0 ══ r1 ══ r2       shape [2, 3, 2]: 2 ports and 2 global links per router, 3 routers a group
//            ╱╲    ╱╲    ╱╲
//
// Global channel k of group i is on its router k / (global links) and leads to group i + 1 + k mod (groups − 1).
// Minimal routing: to the gateway, over one global link, to the destination's router. Where two groups have several
// links, the routers at both ends choose one.
#include <algorithm>

#include "models/machine/topology.h"

namespace slipway::models {
namespace {

struct Sizes {
  int ports = 1, routers = 1, global = 1;  // per router, per group, per router
  int groups = 1;
  int channels() const { return routers * global; }  // per group
};

Sizes sizes_of(const Fabric& fabric, const FabricPorts& ports) {
  const std::vector<int>& shape = counts_of(fabric, "shape");
  Sizes sizes{shape[0], shape[1], shape.size() > 2 ? shape[2] : shape[0], 1};
  const int per_group = sizes.ports * sizes.routers;
  sizes.groups = (ports.count + per_group - 1) / per_group;
  return sizes;
}

Topology::Misfit refuse(const Fabric& fabric, const FabricPorts& ports) {
  if (const std::size_t numbers = counts_of(fabric, "shape").size(); numbers < 2 || numbers > 3)
    return {"shape",
            "a dragonfly has two or three numbers; allowed: [ports per router, routers per group, global links "
            "per router]",
            "add for example 'shape: [4, 8, 4]'"};
  const Sizes sizes = sizes_of(fabric, ports);
  if (sizes.groups - 1 > sizes.channels())
    return {"shape",
            std::to_string(ports.count) + " ports make " + std::to_string(sizes.groups) +
                " groups, but a group has only " + std::to_string(sizes.channels()) +
                " global links to reach the others; allowed: at most one group more than global links of a "
                "group",
            "give more routers a group or more global links a router"};
  return {};
}

void add_local(const Fabric& fabric, const Sizes& sizes, int group, int from, int to, Way& way) {
  if (from == to) return;
  const int key = (group * sizes.routers + from) * sizes.routers + to;
  way.links.push_back({key_of(LinkKind::inner, static_cast<std::uint32_t>(key)), link_bandwidth(fabric)});
  ++way.hops;
}

void route(const Fabric& fabric, const FabricPorts& ports, const Port& from, const Port& to, Way& way) {
  const Sizes sizes = sizes_of(fabric, ports);
  const int a = from.number / sizes.ports, b = to.number / sizes.ports;  // routers
  const int here = a / sizes.routers, there = b / sizes.routers;
  const int first = a % sizes.routers, last = b % sizes.routers;
  add_port_up(way, fabric, from);
  if (here == there) {
    add_local(fabric, sizes, here, first, last, way);
  } else {
    const int others = sizes.groups - 1, trunks = sizes.channels() / others;
    const int trunk = (first + last) % trunks * others;
    const int out = (there - here - 1 + sizes.groups) % sizes.groups + trunk;
    const int in = (here - there - 1 + sizes.groups) % sizes.groups + trunk;
    add_local(fabric, sizes, here, first, out / sizes.global, way);
    const int key = here * sizes.channels() + out;
    way.links.push_back({key_of(LinkKind::long_link, static_cast<std::uint32_t>(key)), global_bandwidth(fabric)});
    ++way.hops;
    add_local(fabric, sizes, there, in / sizes.global, last, way);
  }
  add_port_down(way, fabric, to);
}

const RegisterTopology registered{
    {.name = "dragonfly",
     .summary = "groups of fully joined routers, every two groups joined too; minimal routing (Kim et al. 2008)",
     .parameters = {shape_parameter("ports per router, routers per group, global links per router"),
                    link_bandwidth_parameter(), global_bandwidth_parameter("bandwidth of one link between groups"),
                    hop_latency_parameter()},
     .refuse = refuse,
     .route = route}};

}  // namespace
}  // namespace slipway::models
