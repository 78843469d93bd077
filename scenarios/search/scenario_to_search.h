// Loads a scenario whose layout and schedule a search chooses: they may be impossible as written, unless they are kept.
//
//   source ──as written──► fine: this one
//                └──► data parallel over all GPUs, or, with kept keys or a schedule.csv, the first layout around them
//
// Guarded by tests/scenarios/plan_command_test.cpp and tests/scenarios/search_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/load_scenario.h"

namespace slipway::scenarios {

// `kept`: of searched_keys() (scenarios/search/search.h). Throws ScenarioRefused, or UsageError for what no search prices.
Scenario scenario_to_search(const ScenarioSource& source, const std::vector<std::string>& kept);

}  // namespace slipway::scenarios
