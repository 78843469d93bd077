// Remedies where no layout fits: variations of the scenario. Each is tried by the closed form of all its layouts and the
// verdict of those with the least memory. Guarded by tests/scenarios/plan_command_test.cpp.
#pragma once

#include "scenarios/language/read_scenario.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {

// "16 nodes instead of 8: tensor 8, ..." Powers of two, the smallest that suffices. `scenario` is what the search made of
// `source`, `kept` the keys that it kept; the first remedy is to keep none. Of the options, those of memory, workers and
// interruption count.
std::vector<std::string> remedies(const ScenarioSource& source, const Scenario& scenario,
                                  const std::vector<std::string>& kept, const PricedLayout& closest,
                                  const SearchOptions& options);

}  // namespace slipway::scenarios
