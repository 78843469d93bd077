// Fat-tree: switches above switches, as many or fewer links upward than downward.
//
//        core            shape [4, 2]: 4 ports on a leaf, 2 leaves on a pod's switch
//       ║    ║           uplinks [2, 2], or oversubscription 2 at the leaves
//      pod   pod
//      ║ ║   ║ ║         16 ports: 4 leaves, 2 pods
//      leaves
//
// A message climbs to the first switch that both ports are below. The uplinks of a switch are one link of their common
// bandwidth (adaptive routing spreads messages over them). When pinned, a message takes the uplink that its
// destination's number selects (d-mod-k, Zahavi 2010; InfiniBand's static routing does the same). Two messages that
// meet there halve each other while other uplinks idle. Leiserson 1985.
#include "models/machine/topology.h"

namespace slipway::models {
namespace {

bool is_pinned(const Fabric& fabric) { return word_of(fabric, "routing") == "static"; }

struct Level {
  double below = 0;  // bytes/s that one switch takes from below
  double above = 0;  // bytes/s of all its uplinks
  int ports = 1;     // below one switch
  int uplinks = 0;   // 0: one common link
};

// Level `l` of the shape, from 0.
Level level_of(const Fabric& fabric, int l) {
  const std::vector<int>&shape = counts_of(fabric, "shape"), &uplinks = counts_of(fabric, "uplinks");
  Level level;
  double child = fabric.bandwidth;  // upward, of one of its children
  for (int i = 0; i <= l; ++i) {
    const int children = shape[i];
    level.ports *= children;
    level.below = child * children;
    level.above = i == 0 ? level.below / number_of(fabric, "oversubscription") : level.below;
    level.uplinks = 0;
    if (i < std::ssize(uplinks)) {
      level.uplinks = uplinks[i];
      level.above = level.uplinks * link_bandwidth(fabric);
    }
    child = level.above;
  }
  return level;
}

Topology::Misfit refuse(const Fabric& fabric, const FabricPorts&) {
  const std::vector<int>&shape = counts_of(fabric, "shape"), &uplinks = counts_of(fabric, "uplinks");
  if (shape.empty())
    return {"shape", "a fat-tree needs the ports of a leaf; allowed: [ports per leaf, leaves per pod, ...]",
            "add for example 'shape: [32]'"};
  if (uplinks.size() > shape.size())
    return {"uplinks",
            "there are more levels of uplinks than of switches; allowed: up to " + std::to_string(shape.size()),
            "leave some out, or name more levels in shape"};
  if (!uplinks.empty() && number_of(fabric, "oversubscription") != 1)
    return {"oversubscription", "uplinks are given as well, and say the same; allowed: one of them",
            "leave one of the two out"};
  if (is_pinned(fabric) && uplinks.empty())
    return {"routing", "static routing needs to know the links to choose from; allowed: with uplinks",
            "add for example 'uplinks: [" + std::to_string(shape.front()) + "]'"};
  return {};
}

void route(const Fabric& fabric, const FabricPorts&, const Port& from, const Port& to, Way& way) {
  add_port_up(way, fabric, from);
  const int levels = static_cast<int>(counts_of(fabric, "shape").size());
  for (int l = 0; l < levels; ++l) {
    const Level level = level_of(fabric, l);
    const int up = from.number / level.ports, down = to.number / level.ports;
    if (up == down) break;
    way.hops += 2;
    const bool pinned = is_pinned(fabric) && level.uplinks > 0;
    if (!pinned && level.above >= level.below) continue;
    const int cable = pinned ? to.number % level.uplinks : 0, cables = pinned ? level.uplinks : 1;
    const auto key = [&](LinkKind kind, int its) {  // below all switches are at most as many ports
      return key_of(kind, static_cast<std::uint32_t>((its * cables + cable) * levels + l));
    };
    way.links.push_back({key(LinkKind::inner, up), level.above / cables});
    way.links.push_back({key(LinkKind::inner_down, down), level.above / cables});
  }
  add_port_down(way, fabric, to);
}

bool is_star(const Fabric& fabric, const FabricPorts&) {
  if (is_pinned(fabric) || number_of(fabric, "hop_latency") > 0) return false;
  for (int l = 0; l < static_cast<int>(counts_of(fabric, "shape").size()); ++l)
    if (const Level level = level_of(fabric, l); level.above < level.below) return false;
  return true;
}

const RegisterTopology registered{
    {.name = "fat-tree",
     .summary = "leaf switches under pods under a core; oversubscribed where "
                "there are fewer uplinks (Leiserson 1985)",
     .parameters = {shape_parameter("ports per leaf, leaves per pod, ..."),
                    uplinks_parameter(),
                    oversubscription_parameter(),
                    link_bandwidth_parameter(),
                    hop_latency_parameter(),
                    {.name = "routing",
                     .meaning = "adaptive: over all uplinks at once; static: over one, by the destination",
                     .otherwise = "adaptive",
                     .kind = TopologyParameter::Kind::word,
                     .words =
                         [] {
                           return std::vector<std::string_view>{"adaptive", "static"};
                         }}},
     .refuse = refuse,
     .route = route,
     .is_star = is_star}};

}  // namespace
}  // namespace slipway::models
