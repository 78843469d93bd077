// Loads a scenario: read (scenarios/language/read_scenario.h), with a split that is balanced by time as the file asks.
//
//   scenario.yaml, overrides ──► Scenario without errors, which can be prepared and simulated; or all its errors
//
// Guarded by tests/scenarios/scenario_load_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/document.h"
#include "scenarios/language/read_scenario.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Never throws for user mistakes.
LoadResult load_scenario(const ScenarioSource& source);
// The same of a file, or of what is given in its place (scenarios/language/given_scenarios.h); `overrides` are
// "layout.tensor=4" strings.
LoadResult load_scenario(const std::string& path, const std::vector<std::string>& overrides);
// The same of a text that will be the file `path`: its name, and the folder of its relative paths.
LoadResult load_scenario_text(const std::string& text, const std::string& path);
// The same of a run in a table (scenarios/language/read_scenario.h).
LoadResult load_run(const Value& document);

// The scenario, or ScenarioRefused with all load errors at once.
Scenario checked_scenario(const ScenarioSource& source);
// `option`: that of the overrides, which errors name.
Scenario checked_scenario(const std::string& path, const std::vector<std::string>& overrides,
                          const std::string& option = "--set");

}  // namespace slipway::scenarios
