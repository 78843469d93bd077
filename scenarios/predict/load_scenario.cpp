#include "scenarios/predict/load_scenario.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "scenarios/language/given_scenarios.h"
#include "scenarios/predict/balanced_stages.h"

namespace slipway::scenarios {
namespace {

// Nothing is balanced by time on machines that await their calibration.
void derive_split(Settings& settings, Scenario& scenario) {
  const auto awaits = [](const NodeGroup& group) { return awaits_calibration(group.machine); };
  if (std::ranges::any_of(scenario.cluster.groups, awaits)) return;
  try {
    balance_stages(scenario);
  } catch (const std::invalid_argument& reason) {
    settings.refuse("layout.split",
                    std::string("cannot be balanced by time: ") + reason.what() + "; allowed: even, or a list",
                    "choose one of these");
  }
}

}  // namespace

LoadResult load_scenario(const ScenarioSource& source) { return read_scenario(source, derive_split); }

LoadResult load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  return load_scenario(source_of(path, overrides));
}

LoadResult load_scenario_text(const std::string& text, const std::string& path) {
  return load_scenario({path, {}, text});
}

LoadResult load_run(const Value& document) { return read_run(document, derive_split); }

Scenario checked_scenario(const ScenarioSource& source) { return accepted(load_scenario(source)); }

Scenario checked_scenario(const std::string& path, const std::vector<std::string>& overrides,
                          const std::string& option) {
  LoadResult loaded = load_scenario(path, overrides);
  const std::string usual = "--set ";
  for (ScenarioError& defect : loaded.errors)
    if (defect.file.starts_with(usual)) defect.file.replace(0, usual.size(), option + " ");
  return accepted(std::move(loaded));
}

}  // namespace slipway::scenarios
