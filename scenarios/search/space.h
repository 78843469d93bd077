// The layouts that a search chooses from. Guarded by tests/scenarios/search_space_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// What is recomputed: attention's scores or whole layers, or modules of layers.
struct RecomputeChoice {
  Recompute kind = Recompute::none;
  SetOf<RecomputedModule> modules = {};
};

// The values that each key may take. Fixed keys have one.
struct SearchSpace {
  std::vector<int> tensor, context, pipeline, expert, expert_tensor, zero;
  std::vector<bool> sequence_parallel;
  std::vector<int> chunks;  // empty: all
  std::vector<const Schedule*> schedules;
  std::vector<RecomputeChoice> recompute;
  std::vector<std::int64_t> micro_batch;  // empty: all
  int data = 0;                           // 0: whatever is left
  int micro_batches = 0;                  // of a pipeline, as schedule.csv has them; 0: any number
  bool splits = true, orders = true;  // on uneven clusters: may layers and nodes be moved (scenarios/search/refine.h)
};
// The keys that --keep takes: "layout.tensor", ..., in the order of the scenario reference.
const std::vector<std::string>& searched_keys();
// Throws UsageError for keys that are not these. `option` is what asks to keep them: "--keep".
void check_kept(const std::vector<std::string>& kept, const std::string& option);
// Everything for the scenario's model and cluster, but for the keys of `kept`, which have its values. Context groups leave
// each member 256 tokens (or have up to eight members). Schedules
// are those that bounds are sharp for (Schedule::searched); any other can be kept. For models with experts, modules
// that NVIDIA's recipes recompute are searched too (megatron_moe_recipes of Megatron-LM). The action lists of
// schedule.csv stay: their ranks are the pipeline, and stages and micro-batches are theirs.
SearchSpace search_space(const Scenario& scenario, const std::vector<std::string>& kept);
// Calls `visit` for each layout of the space that the scenario's loader accepts, in a fixed order; layouts
// that are another one in disguise are left out: chunks or another schedule than the default without a pipeline,
// ZeRO without a data group, whole experts without tensor ranks, selective recomputation of what fused kernels never keep.
void each_layout(const Scenario& scenario, const SearchSpace& space, const std::function<void(const Step&)>& visit);
// The scenario with this layout; `resolved` and `summary` still say the old one.
Scenario with_layout(const Scenario& scenario, const Step& choice);
// The same as options of --set.
std::vector<std::string> overrides_of(const Step& choice);

}  // namespace slipway::scenarios
