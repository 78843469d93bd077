// Can the ranks that must talk to each other do so? Walks the neighbours of every group of the layout.
#include <algorithm>

#include "scenarios/language/check_scenario.h"

namespace slipway {
namespace {

bool connected(const Cluster& cluster, const Place& a, const Place& b) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return connects(fabric, a, b); });
}

std::string in_words(const Place& place) {
  return "GPU " + std::to_string(place.gpu) + " of node " + std::to_string(place.node) + " (group " +
         std::to_string(place.group) + ")";
}

struct AxisOfLayout {
  const char* name;
  int degree;
  int Coordinates::*position;
};

// The first pair of neighbours along an axis that no fabric connects is one error.
bool check_axis(Settings& settings, const Scenario& scenario, const AxisOfLayout& axis) {
  const int ranks = rank_count(scenario.layout);
  for (int rank = 0; rank < ranks && axis.degree > 1; ++rank) {
    Coordinates at = coordinates_of(scenario.layout, rank);
    at.*axis.position = (at.*axis.position + 1) % axis.degree;
    const int peer = rank_of(scenario.layout, at);
    const Place here = place_of(scenario.cluster, rank), there = place_of(scenario.cluster, peer);
    if (connected(scenario.cluster, here, there)) continue;
    settings.refuse(
        "cluster.fabrics",
        "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " of a " + axis.name +
            " group have no common fabric: " + in_words(here) + " and " + in_words(there) +
            "; allowed: clusters in which all members of a group are connected",
        "add a fabric with both groups as members (scope cluster between nodes), or give the machine "
        "profile a " +
            std::string(here.node == there.node ? "node_link" : "network_link"));
    return false;
  }
  return true;
}

}  // namespace

void check_fabrics(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  const AxisOfLayout axes[] = {{"tensor", layout.tensor, &Coordinates::tensor},
                               {"context", layout.context, &Coordinates::context},
                               {"data", layout.data, &Coordinates::data},
                               {"pipeline", layout.pipeline, &Coordinates::pipeline}};
  for (const AxisOfLayout& axis : axes)
    if (!check_axis(settings, scenario, axis)) return;
}

}  // namespace slipway
