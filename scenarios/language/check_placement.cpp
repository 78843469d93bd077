#include <algorithm>
#include <numeric>

#include "scenarios/language/check_scenario.h"

namespace slipway {

void derive_placement(Settings& settings, Scenario& scenario) {
  if (!settings.given("layout.placement")) return;
  scenario.layout.placement = settings.integers("layout.placement");
  std::vector<int> sorted = scenario.layout.placement, nodes(static_cast<std::size_t>(node_count(scenario.cluster)));
  std::sort(sorted.begin(), sorted.end());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (sorted == nodes) {
    scenario.cluster.gpu_of_rank = gpus_in_order(scenario.cluster, scenario.layout.placement);
    return;
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  const std::string wrong = twice != sorted.end()            ? "node " + std::to_string(*twice) + " is named twice"
                            : sorted.size() != nodes.size() ? "it names " + std::to_string(sorted.size()) + " of " +
                                                                  std::to_string(nodes.size()) + " nodes"
                                                            : "there is no node " + std::to_string(sorted.back());
  settings.refuse("layout.placement",
                  wrong + "; allowed: each of 0 to " + std::to_string(nodes.size() - 1) + " once, in any order",
                  "list every node, or leave layout.placement out");
}

}  // namespace slipway
