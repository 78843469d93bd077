// Loads a scenario: read (scenarios/language/read_scenario.h), with a split that is balanced by time as the file asks.
//
//   scenario.yaml, overrides ──► Scenario without errors, which can be prepared and simulated; or all its errors
//
// Guarded by tests/scenarios/scenario_load_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/files/usage_error.h"
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

// A scenario with mistakes: the message has all of them, and what() its words for people.
class ScenarioRefused : public UsageError {
 public:
  explicit ScenarioRefused(std::vector<ScenarioError> errors);
  const std::vector<ScenarioError>& errors() const { return errors_; }

 private:
  std::vector<ScenarioError> errors_;
};

// The scenario, or ScenarioRefused with all load errors at once.
Scenario checked_scenario(const ScenarioSource& source);
// `option`: that of the overrides, which errors name.
Scenario checked_scenario(const std::string& path, const std::vector<std::string>& overrides,
                          const std::string& option = "--set");

}  // namespace slipway::scenarios
