// Torus: every port is a vertex of a grid that closes on itself, with a link to each neighbour and direction.
//
//   shape [4, 2]    0 ═ 1 ═ 2 ═ 3 ═ (0)       a message goes along x, then y, then z, the shorter way
//                   ║   ║   ║   ║             round each; half way round, upward
//                   4 ═ 5 ═ 6 ═ 7 ═ (4)
//
// A slow port is slow on all links of its vertex, both directions.
// The first number of the shape counts neighbours in rank order. A chip is its own router, so forwarding costs it only
// the links (Dally and Seitz 1987; TPU pods, Jouppi et al. 2023). GPUs behind one port reach each other through it.
#include "models/machine/topology.h"

namespace slipway::models {
namespace {

Topology::Misfit refuse(const Fabric& fabric, const FabricPorts& ports) {
  const std::vector<int>& sides = counts_of(fabric, "shape");
  double product = 1;
  for (const int side : sides) product *= side;
  if (sides.empty() || product != ports.count)
    return {"shape",
            (sides.empty() ? std::string("a torus needs its sides")
                           : "its sides multiply to " + std::to_string(static_cast<long long>(product))) +
                ", but the fabric has " + std::to_string(ports.count) +
                " ports; allowed: sides whose product is the number of ports",
            "make shape multiply to " + std::to_string(ports.count)};
  return {};
}

void route(const Fabric& fabric, const FabricPorts&, const Port& from, const Port& to, Way& way) {
  if (from.number == to.number) {
    add_port_up(way, fabric, from);
    add_port_down(way, fabric, to);
    return;
  }
  const std::vector<int>& sides = counts_of(fabric, "shape");
  int at = from.number, stride = 1;
  for (std::size_t d = 0; d < sides.size(); stride *= sides[d], ++d) {
    const int side = sides[d], ahead = (to.number / stride % side - at / stride % side + side) % side;
    const bool up = 2 * ahead <= side;
    for (int steps = up ? ahead : side - ahead; steps > 0; --steps) {
      const auto index =
          static_cast<std::uint32_t>((static_cast<std::size_t>(at) * sides.size() + d) * 2 + (up ? 0 : 1));
      const int x = at / stride % side, next = at + ((x + (up ? 1 : side - 1)) % side - x) * stride;
      way.links.push_back({key_of(LinkKind::inner, index), link_bandwidth(fabric), at, next});
      at = next;
    }
  }
  way.hops = static_cast<int>(way.links.size()) - 1;
}

const RegisterTopology registered{
    {.name = "torus",
     .summary = "a grid that closes on itself, one dimension after the other, the shorter way (Dally and "
                "Seitz 1987)",
     .parameters = {shape_parameter("sides x, y, z, ..., whose product is the number of ports"),
                    link_bandwidth_parameter(), hop_latency_parameter()},
     .refuse = refuse,
     .route = route}};

}  // namespace
}  // namespace slipway::models
