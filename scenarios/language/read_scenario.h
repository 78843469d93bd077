// Reads a scenario: the file, --set, the table of keys, the rule book. It knows no prices, so its caller derives a
// split that is balanced by time. scenarios/predict/load_scenario.h does so, and all other code calls that.
//
//   text ──parse──► Value ──keys──► Scenario ──rules──► derive_split ──► resolved text
//
// Guarded by tests/scenarios/scenario_load_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/language/document.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

// Sets layout.split_list of a scenario without errors, or refuses it. Empty: a balanced split stays as it was written.
using DeriveSplit = std::function<void(Settings& settings, Scenario& scenario)>;

LoadResult read_scenario(const std::string& path, const std::vector<std::string>& overrides,
                         const DeriveSplit& derive_split = nullptr);
// Reads a text instead of a file. `path` gives the scenario its name and the folder of its relative paths.
LoadResult read_scenario_text(const std::string& text, const std::string& path,
                              const DeriveSplit& derive_split = nullptr);
// Reads a run of a table: it has no file and gets no resolved text.
LoadResult read_run(const Value& document, const DeriveSplit& derive_split = nullptr);

}  // namespace slipway::scenarios
