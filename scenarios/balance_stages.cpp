#include <algorithm>
#include <stdexcept>

#include "scenarios/check_scenario.h"
#include "schedules/graph/balanced_split.h"

namespace slipway {

void balance_stages(Scenario& scenario) {
  Layout& layout = scenario.layout;
  if (layout.split != SplitKind::balanced) return;
  layout.split_list.clear();
  if (!has_unequal_stages(scenario.cluster, layout)) return;
  Scenario paced = scenario;
  set_pace(paced);
  layout.split_list = time_balanced_layers(lowering_input(paced), paced.cluster);
}

void derive_split(Settings& settings, Scenario& scenario) {
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  const auto awaits = [](const NodeGroup& group) { return awaits_calibration(group.machine); };
  if (std::any_of(groups.begin(), groups.end(), awaits)) return;
  try {
    balance_stages(scenario);
  } catch (const std::invalid_argument& reason) {
    settings.refuse("layout.split", std::string("cannot be balanced by time: ") + reason.what() + "; allowed: even, or a list",
                    "choose one of these");
  }
}

}  // namespace slipway
