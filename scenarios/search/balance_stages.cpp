#include <algorithm>
#include <limits>
#include <stdexcept>

#include "scenarios/language/check_scenario.h"
#include "scenarios/memory/changes.h"
#include "schedules/graph/balanced_split.h"

namespace slipway {
namespace {

std::vector<int> layers_of_ranks(const std::vector<int>& layers, const SplitLoads& loads) {
  std::vector<int> sums(loads.most_layers.size(), 0);
  for (std::size_t s = 0; s < layers.size(); ++s) sums[static_cast<std::size_t>(loads.rank[s])] += layers[s];
  return sums;
}

// Those that need more than they may hold fewer than now. Do all fit?
bool lower_limits(const std::vector<StageNeed>& needs, double memory_share, const std::vector<int>& layers,
                  SplitLoads& loads) {
  const std::vector<int> now = layers_of_ranks(layers, loads);
  bool all_fit = true;
  for (std::size_t rank = 0; rank < needs.size(); ++rank) {
    if (needs[rank].bytes <= memory_share * needs[rank].capacity) continue;
    all_fit = false;
    loads.most_layers[rank] = std::min(loads.most_layers[rank], now[rank]) - 1;  // ever less: there is an end
  }
  return all_fit;
}

}  // namespace

std::vector<int> balanced_by_time(const Scenario& scenario, double memory_share) {
  SplitLoads loads = split_loads(lowering_input(scenario), scenario.cluster);
  const std::vector<int> fastest = balanced_layers(loads).value();
  if (loads.rank.empty()) return fastest;  // copies of the model: what one rank saves another one holds
  loads.most_layers.assign(static_cast<std::size_t>(scenario.layout.pipeline), std::numeric_limits<int>::max() / 2);
  Scenario tried = scenario;
  tried.layout.split = SplitKind::list;
  for (std::optional<std::vector<int>> layers = fastest; layers; layers = balanced_layers(loads)) {
    tried.layout.split_list = *layers;
    if (lower_limits(stage_needs(tried), memory_share, *layers, loads)) return *layers;
  }
  return fastest;
}

void balance_stages(Scenario& scenario) {
  Layout& layout = scenario.layout;
  if (layout.split != SplitKind::balanced) return;
  layout.split_list.clear();
  if (layout.chunks == 1 && !has_unequal_stages(scenario.cluster, layout)) return;
  Scenario paced = scenario;
  set_pace(paced);
  layout.split_list = balanced_by_time(paced, scenario.trainer.usable_share);
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
