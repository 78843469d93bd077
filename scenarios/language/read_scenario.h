// Reads a scenario: the file, --set, the table of keys, the rule book. It knows no prices, so its caller derives a
// split that is balanced by time. scenarios/predict/load_scenario.h does so, and all other code calls that.
//
//   text ──parse──► Value ──keys──► Scenario ──rules──► derive_split ──► resolved text
//
// Guarded by tests/scenarios/scenario_load_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/files/usage_error.h"
#include "scenarios/language/document.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

// Sets layout.split_list of a scenario without errors, or refuses it. Empty: a balanced split stays as it was written.
using DeriveSplit = std::function<void(Settings& settings, Scenario& scenario)>;

// What a scenario is read from.
struct ScenarioSource {
  std::string path;                               // its name, and the folder of its relative paths
  std::vector<std::string> overrides = {};        // "layout.tensor=4", applied in this order
  std::optional<std::string> text = {};           // instead of what the file holds
  std::shared_ptr<const Schedule> schedule = {};  // a caller's, instead of the one that schedule.name says
};

LoadResult read_scenario(const ScenarioSource& source, const DeriveSplit& derive_split = nullptr);
// A scenario with mistakes. what() lists all of them in words.
class ScenarioRefused : public UsageError {
 public:
  explicit ScenarioRefused(std::vector<ScenarioError> errors);
  const std::vector<ScenarioError>& errors() const { return errors_; }

 private:
  std::vector<ScenarioError> errors_;
};
// The scenario of a load without errors. Throws ScenarioRefused for any other.
Scenario accepted(LoadResult loaded);

// Reads a run of a table: it has no file and gets no resolved text.
LoadResult read_run(const Value& document, const DeriveSplit& derive_split = nullptr);

}  // namespace slipway::scenarios
