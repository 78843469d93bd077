// What would be if: a scenario with other values of some keys, and the one evaluator of its memory and step. Changes of
// `memory`, levers of `explain`, layouts and remedies of `plan` and points of `study` are variations.
//
//   scenario + variation ──► varied scenario, or why there is none
//                                 └─► memory by the estimate ──► is it worth it? ──► replay or simulation ──► step, memory
//
// Guarded by tests/scenarios/variation_test.cpp.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/predict/verdict.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {

struct Variation {
  std::string words;                   // for people: "micro-batch x 2", "ZeRO 2 instead of 0; full recompute"
  std::vector<std::string> overrides;  // "layout.zero=2", as for --set; of levers also habits of the trainer in words
};

struct VariedScenario {
  Variation variation;
  std::optional<Scenario> scenario;  // ready to be priced
  std::string why_not;               // without a scenario
};
// Loads the file of `origin` with the overrides that made it and those of the variation.
VariedScenario varied(const Scenario& origin, const std::vector<std::string>& overrides, Variation variation);

// On the pipeline rank that is least likely to fit.
struct MemoryNeed {
  double bytes = 0, recommended_bytes = 0;  // median; what 99 % of needs stay below
  double capacity = 0;
  double fit_probability = 0;
  bool fits() const { return is_likely(fit_probability); }
  double share() const { return bytes / capacity; }
  double recommended_share() const { return recommended_bytes / capacity; }
};

struct Evaluation {
  MemoryNeed estimated, memory;  // before any graph; with the timeline, where there is one
  double replayed_s = 0;         // without contention; 0: unknown
  bool has_timeline = false;     // else the numbers below are 0
  StepMetrics step;
  double timeline_bytes = 0, timeline_share = 0;  // peak of the fullest rank
};
// For the answers of workers.
void to_json(nlohmann::json& json, const Evaluation& evaluation);
void from_json(const nlohmann::json& json, Evaluation& evaluation);

// Of a step that is simulated already, or beyond its limit.
Evaluation evaluation_of(const SimulatedStep& step);

// How a timeline is made, where one is wanted: without contention, or as `slipway simulate` does it.
enum class TimelineBy : std::uint8_t { replay, simulation };
// Looks at the estimated memory: seconds beyond which a step is not simulated, or unset to make no timeline at all.
using StepLimit = std::function<std::optional<double>(const MemoryNeed& estimated)>;
// Throws std::invalid_argument for what cannot be priced.
Evaluation evaluate(const Scenario& scenario, TimelineBy by, const StepLimit& limit);

}  // namespace slipway::scenarios
