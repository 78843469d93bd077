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

}  // namespace slipway::scenarios
