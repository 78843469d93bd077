#include "scenarios/predict/balanced_stages.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "scenarios/predict/verdict.h"
#include "schedules/bound/balanced_split.h"

namespace slipway::scenarios {

namespace {

std::vector<int> layers_of_ranks(const std::vector<int>& layers, const SplitLoads& loads) {
  std::vector<int> sums(loads.most_layers.size(), 0);
  for (std::size_t s = 0; s < layers.size(); ++s) sums[loads.rank[s]] += layers[s];
  return sums;
}

// Lowers the layer limit of every rank that needs too much memory. Returns true if all fit.
bool lower_limits(const std::vector<StageNeed>& needs, double memory_share, const std::vector<int>& layers,
                  SplitLoads& loads) {
  const std::vector<int> now = layers_of_ranks(layers, loads);
  bool all_fit = true;
  for (std::size_t rank = 0; rank < needs.size(); ++rank) {
    if (needs[rank].odds.recommended() <= memory_share * needs[rank].capacity) continue;
    all_fit = false;
    loads.most_layers[rank] = std::min(loads.most_layers[rank], now[rank]) - 1;  // falls every round, so the loop ends
  }
  return all_fit;
}

}  // namespace

std::vector<int> balanced_by_time(const Scenario& scenario, double memory_share) {
  SplitLoads loads = split_loads(scenario.step, priced_cluster(scenario));
  const std::vector<int> fastest = balanced_layers(loads).value();
  if (loads.rank.empty()) return fastest;  // copies of the model: one rank's savings are another one's load
  loads.most_layers.assign(scenario.step.layout.pipeline, std::numeric_limits<int>::max() / 2);
  Scenario tried = scenario;
  tried.step.layout.split = SplitKind::list;
  for (std::optional<std::vector<int>> layers = fastest; layers; layers = balanced_layers(loads)) {
    tried.step.layout.split_list = *layers;
    if (lower_limits(stage_needs(tried), memory_share, *layers, loads)) return *layers;
  }
  return fastest;
}

void balance_stages(Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  if (layout.split != SplitKind::balanced) return;
  layout.split_list.clear();
  if (layout.chunks == 1 && !has_unequal_stages(scenario.cluster, layout)) return;
  layout.split_list = balanced_by_time(scenario, 1);
}

}  // namespace slipway::scenarios
