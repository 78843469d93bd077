#include "scenarios/search/variation.h"

#include <nlohmann/json.hpp>

#include "scenarios/predict/filling.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"

namespace slipway::scenarios {
namespace {

MemoryNeed need_of(const Verdict& verdict) {
  return {verdict.odds.bytes, verdict.odds.recommended(), verdict.capacity, verdict.probability};
}

// Without the checks that the variation has passed.
SimulatedStep simulated_unchecked(const Scenario& scenario, double limit_s) {
  StepOptions options;
  options.makespan = false;
  options.limit_s = limit_s;
  return simulated_step(scenario, options,
                        {[](const Scenario& of, const PrepareOptions& how) {
                           PreparedStep prepared = prepared_unchecked(of, how);
                           fill_bubbles(prepared);
                           return prepared;
                         },
                         plain_workers().simulate});
}

Evaluation estimated(const Scenario& scenario) {
  Evaluation evaluation;
  evaluation.estimated = evaluation.memory = need_of(verdict_of(scenario));
  return evaluation;
}

void note_step(const SimulatedStep& step, Evaluation& evaluation) {
  const Scenario& scenario = step.prepared.scenario;
  const Timeline& timeline = step.simulation.timeline;
  evaluation.replayed_s = step.replayed_s;
  if (timeline.start.empty()) return;  // above the limit
  evaluation.has_timeline = true;
  evaluation.step = metrics_of(step.prepared.graph, timeline, peak_flops(scenario), periodic_of(step));
  const std::vector<StageMemory> stages = stage_memory(step.prepared, timeline, periodic_of(step));
  for (const StageMemory& stage : stages) {
    if (stage.use.peak <= evaluation.timeline_share * stage.capacity) continue;
    evaluation.timeline_bytes = stage.use.peak;
    evaluation.timeline_share = stage.use.peak / stage.capacity;
  }
  if (evaluation.timeline_share > 0)
    evaluation.memory = need_of(verdict_of(stage_needs(scenario, on_timeline(stages))));
}

}  // namespace

VariedScenario varied(const Scenario& origin, const std::vector<std::string>& overrides, Variation variation) {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), variation.overrides.begin(), variation.overrides.end());
  LoadResult loaded = load_scenario(origin.path, all);
  if (!loaded.errors.empty()) return {std::move(variation), {}, loaded.errors.front().message};
  return {std::move(variation), std::move(loaded.scenario), ""};
}

Evaluation evaluation_of(const SimulatedStep& step) {
  Evaluation evaluation = estimated(step.prepared.scenario);
  note_step(step, evaluation);
  return evaluation;
}

Evaluation evaluate(const Scenario& scenario, TimelineBy by, const StepLimit& limit) {
  Evaluation evaluation = estimated(scenario);
  if (const std::optional<double> limit_s = limit(evaluation.estimated))
    note_step(by == TimelineBy::replay ? replayed_step(scenario) : simulated_unchecked(scenario, *limit_s), evaluation);
  return evaluation;
}

}  // namespace slipway::scenarios

namespace slipway::schedules {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepMetrics, step_time_s, makespan_s, mfu, bubble_share, exposed_comm_s,
                                   exposed_comm_share, compute_share)
}  // namespace slipway::schedules

namespace slipway::scenarios {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryNeed, bytes, recommended_bytes, capacity, fit_probability)

void to_json(nlohmann::json& json, const Evaluation& evaluation) {
  json = {{"estimated", evaluation.estimated},
          {"memory", evaluation.memory},
          {"replayed_s", evaluation.replayed_s},
          {"has_timeline", evaluation.has_timeline},
          {"step", evaluation.step},
          {"timeline_bytes", evaluation.timeline_bytes},
          {"timeline_share", evaluation.timeline_share}};
}

void from_json(const nlohmann::json& json, Evaluation& evaluation) {
  json.at("estimated").get_to(evaluation.estimated);
  json.at("memory").get_to(evaluation.memory);
  json.at("replayed_s").get_to(evaluation.replayed_s);
  json.at("has_timeline").get_to(evaluation.has_timeline);
  json.at("step").get_to(evaluation.step);
  json.at("timeline_bytes").get_to(evaluation.timeline_bytes);
  json.at("timeline_share").get_to(evaluation.timeline_share);
}

}  // namespace slipway::scenarios
