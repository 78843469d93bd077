#include "scenarios/search/levers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "scenarios/language/check_scenario.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/search/search.h"
#include "schedules/rules/rules.h"

namespace slipway::scenarios {
namespace {

// The keys whose values differ, as options of --set.
std::vector<std::string> settings_of(const Scenario& before, const Scenario& after) {
  std::vector<std::string> settings;
  for (const Key& key : scenario_keys()) {
    if (key.bound.write == nullptr || (!key.path.starts_with("layout.") && !key.path.starts_with("schedule.")))
      continue;
    const std::string was = key.bound.write(before), is = key.bound.write(after);
    if (was != is) settings.push_back(std::string(key.path) + "=" + is);
  }
  const TrainerFacts &was = before.trainer, &is = after.trainer;
  if (was.overlaps_reduction != is.overlaps_reduction) settings.emplace_back("trainer overlaps gradient reductions");
  if (was.overlaps_gather != is.overlaps_gather) settings.emplace_back("trainer overlaps weight gathers");
  if (was.blocking_transfers != is.blocking_transfers) settings.emplace_back("trainer does not wait for sends");
  return settings;
}

// The trainer of a file, which the loader has read before, or a built-in one.
std::optional<Trainer> trainer_of(const Scenario& scenario) {
  if (scenario.trainer_file.empty()) {
    const Trainer* built_in = built_in_trainer(with_version(scenario.trainer.name, scenario.trainer_version));
    return built_in == nullptr ? std::nullopt : std::optional(*built_in);
  }
  Defects ignored;
  Reference from;
  from.origin.file = scenario.path;
  from.key = "cluster.trainer";
  from.folder = std::filesystem::path(scenario.path).parent_path().string();
  return load_trainer(scenario.trainer_file, from, ignored);
}

// The reason why the scenario's trainer cannot do this; empty: it can, or it is unknown. Only a named trainer lacks
// anything.
std::string lack_of(const Scenario& scenario, const std::vector<std::string>& settings) {
  if (!scenario.names_trainer) return "";
  const std::optional<Trainer> trainer = trainer_of(scenario);
  if (!trainer) return "";
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) return scenario.trainer.name + " does not do so";  // a habit
    const auto lever = trainer->levers.find(setting.substr(0, equals));
    if (lever == trainer->levers.end()) continue;
    const std::vector<std::string>& values = lever->second;
    if (std::ranges::find(values, setting.substr(equals + 1)) == values.end())
      return fmt::format("{} does not have it; of {} it has {}", scenario.trainer.name, lever->first,
                         fmt::join(values, ", "));
  }
  return "";
}

}  // namespace

std::vector<Lever> all_levers() {
  std::vector<Lever> all;
  for (const auto& group : {batch_levers, schedule_levers, memory_levers, overlap_levers, layout_levers}) {
    std::vector<Lever> levers = group();
    all.insert(all.end(), std::make_move_iterator(levers.begin()), std::make_move_iterator(levers.end()));
  }
  return all;
}

VariedScenario changed_by(const Lever& lever, const Scenario& scenario) {
  VariedScenario change{{lever.name, {}}, {}, ""};
  Scenario changed = scenario;
  try {
    change.why_not = lever.pull(changed);
    if (!change.why_not.empty()) return change;
    derive_step(changed);
    const std::vector<Refusal> refused = refusals(changed.step, changed.cluster);
    if (!refused.empty()) {
      change.why_not = text_of(refused.front());
      return change;
    }
    if (!runs_every_batch(changed.growth, changed.step)) {
      change.why_not = "a batch of training.growth does not divide so";
      return change;
    }
    changed = with_layout(changed, changed.step);
  } catch (const std::invalid_argument& error) {
    change.why_not = error.what();
    return change;
  }
  change.variation.overrides = settings_of(scenario, changed);
  change.why_not = lack_of(scenario, change.variation.overrides);
  if (!change.why_not.empty()) return change;
  change.scenario = std::move(changed);
  return change;
}

}  // namespace slipway::scenarios
