// The readers without prices: a split that is to be balanced by time stays as it was written (scenarios/predict/load_scenario.h).
#include "scenarios/language/read_scenario.h"
#include "scenarios/predict/load_scenario.h"

namespace slipway::scenarios {

LoadResult load_scenario(const ScenarioSource& source) { return read_scenario(source); }

LoadResult load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  return read_scenario({path, overrides});
}

LoadResult load_scenario_text(const std::string& text, const std::string& path) {
  return read_scenario({path, {}, text});
}

Scenario checked_scenario(const ScenarioSource& source) { return accepted(load_scenario(source)); }

LoadResult load_run(const Value& document) { return read_run(document); }

}  // namespace slipway::scenarios
