// The answer of `slipway growth` for programs.
#include <nlohmann/json.hpp>

#include "scenarios/basis.h"
#include "scenarios/growth/comparison.h"
#include "scenarios/json_summary.h"

namespace slipway {
namespace {

nlohmann::json milestone_json(const Milestone& at) {
  return {{"steps", at.steps}, {"sequences", at.samples}, {"loss", at.loss}};
}

nlohmann::json rule_json(const RuleAnswer& rule) {
  nlohmann::json json{{"name", rule.name}};
  if (rule.course.whole) {
    json["end"] = milestone_json(rule.course.end);
    json["end"]["time_s"] = rule.end_s;
  }
  if (rule.target_s) {
    json["target"] = milestone_json(*rule.course.target);
    json["target"]["time_s"] = *rule.target_s;
  }
  if (rule.target_range) {
    json["target_range_s"] = {rule.target_range->least_s, rule.target_range->most_s};
    json["always_reached"] = rule.always_reached;
  }
  json["spans"] = nlohmann::json::array();
  for (const BatchSpan& span : rule.course.spans)
    json["spans"].push_back({{"batch", span.batch},
                             {"from_sequence", span.from_samples},
                             {"from_loss", span.from_loss},
                             {"steps", span.steps}});
  return json;
}

nlohmann::json rung_json(const RungStep& rung) {
  return {{"batch", rung.batch},
          {"micro_batches", rung.micro_batches},
          {"step_time_s", rung.step_s},
          {"tokens_per_s", rung.tokens_per_s},
          {"mfu", rung.mfu},
          {"fits", rung.fits}};
}

}  // namespace

std::string growth_json(const Scenario& scenario, const GrowthAnswer& answer) {
  JsonSummary json(growth_json_keys());
  const double s = answer.sequence;
  json.set("scenario", scenario.name);
  json.set("rule", answer.own().name);
  if (answer.own().target_s) json.set("time_to_target_s", *answer.own().target_s);
  if (answer.own().target_s && answer.first().target_s)
    json.set("speedup", *answer.first().target_s / *answer.own().target_s);
  json.set("time_s", answer.own().end_s);
  json.set("last_loss", answer.own().course.end.loss);
  nlohmann::json rules = nlohmann::json::array(), rungs = nlohmann::json::array(),
                 others = nlohmann::json::array();
  for (const RuleAnswer& rule : answer.rules) rules.push_back(rule_json(rule));
  for (const RungStep& rung : answer.rungs) rungs.push_back(rung_json(rung));
  json.set("rules", rules);
  for (const RungStep& rung : answer.other_rungs) others.push_back(rung_json(rung));
  json.set("rungs", rungs);
  if (!others.empty()) json.set("other_rungs", others);
  json.set("line_error", answer.line_error);
  json.set("noise_scale_first",
           noise_scale_at(scenario.growth.dynamics, scenario.growth.dynamics.start) / s);
  json.set("noise_scale_last", noise_scale_at(scenario.growth.dynamics, answer.own().course.end.loss) / s);
  json.set("source", scenario.growth.source);
  nlohmann::json outside = nlohmann::json::array();
  for (const OutsideCurves& each : outside_curves(scenario, answer))
    outside.push_back({{"here", each.what}, {"fitted", each.fitted}});
  json.set("outside_curves", outside);
  set_basis_keys(json, without_memory(basis_of(scenario)));
  return json.text();
}

}  // namespace slipway
