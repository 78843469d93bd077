// From the keys of a scenario to a step that can be: derived values, then the rule book (schedules/rules/rules.h), then
// the checks of what only a scenario has: schedule.csv and training.
// Guarded by tests/scenarios/scenario_errors_test.cpp, a test per check, and tests/scenarios/growth_ladder_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

// The batches from `first` to `largest` that the step can have, ascending (schedules::takes_batch).
std::vector<std::int64_t> rungs_between(const Step& step, std::int64_t first, std::int64_t largest);

// True if the step can have every batch that `training.growth` names, and always without training.growth. For searches
// of layouts; the loader reports the same with the key.
bool runs_every_batch(const GrowthChoice& growth, const Step& step);

// Sets layout.data, layout.chunks, schedule.slices, schedule.fill and run.dtype where the scenario leaves them to be
// derived, then checks everything. `has_model` and `has_cluster`: those parts of `scenario` could be read.
void derive_and_check(Settings& settings, bool has_model, bool has_cluster, Scenario& scenario);

// Replaces layout.split balanced by the split by time (schedules/bound/balanced_split.h), written into
// layout.split_list, where the machines of pipeline ranks differ or ranks hold several chunks. Call it again after a
// change of layout or schedule. Throws std::invalid_argument where blocks cannot be priced.
void balance_stages(Scenario& scenario);
// The same as an error of the file. Nothing is balanced by time on machines that await their calibration.
void derive_split(Settings& settings, Scenario& scenario);
// Layers per stage for a scenario at its prices. Takes the split with the fastest slowest rank among those in which each
// pipeline rank needs at most this share of its memory by the verdict (scenarios/step/verdict.h); where none fits,
// among all splits. A rank that needs more gets a layer less, and so on. So a split that is left out does not fit,
// unless other chunks of the rank had held its layers. Guarded by tests/scenarios/refine_test.cpp.
std::vector<int> balanced_by_time(const Scenario& scenario, double memory_share);

}  // namespace slipway::scenarios
