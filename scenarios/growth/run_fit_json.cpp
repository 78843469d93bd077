// The answer of `slipway growth --fit RUN` for programs.
#include "scenarios/growth/interval_json.h"
#include "scenarios/growth/run_fit_report.h"
#include "scenarios/json_summary.h"

namespace slipway {
namespace {

nlohmann::json group_json(const RunFitAnswer& answer, const NoiseGroup& group) {
  return {{"first_step", answer.from + group.first + 1},
          {"steps", group.steps},
          {"loss", group.loss},
          {"batch", group.batch_tokens / answer.run.sequence},
          {"noise_scale", group.noise_tokens}};
}

nlohmann::json end_json(const RunEnd& end) {
  return {{"fitted_steps", end.fitted}, {"loss", end.predicted}, {"before", end.before}, {"noise_scale", end.noise_tokens}};
}

nlohmann::json unseen_json(const UnseenRun& each) {
  nlohmann::json json{{"run", each.run.folder},
                      {"batches", interval_json(each.run.batches())},
                      {"learning_rates", interval_json(each.run.rates())},
                      {"last_loss", each.last_loss},
                      {"predicted_loss", each.predicted_loss}};
  if (each.tokens) json["tokens"] = *each.tokens;
  if (each.predicted_tokens) json["predicted_tokens"] = *each.predicted_tokens;
  return json;
}

}  // namespace

std::string run_fit_json(const RunFitAnswer& answer) {
  JsonSummary json(growth_run_fit_json_keys());
  const LossDynamics& d = answer.fit.dynamics;
  nlohmann::json groups = nlohmann::json::array(), ends = nlohmann::json::array(), unseen = nlohmann::json::array();
  for (const NoiseGroup& group : answer.noise.groups) groups.push_back(group_json(answer, group));
  for (const RunEnd& end : answer.ends) ends.push_back(end_json(end));
  for (const UnseenRun& each : answer.unseen) unseen.push_back(unseen_json(each));
  json.set("run", answer.run.folder);
  json.set("steps", answer.run.steps.size());
  json.set("sequence", answer.run.sequence);
  json.set("noise_scale", d.noise_tokens);
  json.set("noise_range", interval_json(*answer.noise.interval));
  json.set("noise_loss", d.noise_loss);
  json.set("noise_exponent", d.noise_exponent);
  if (answer.noise.exponent_interval) json.set("noise_exponent_range", interval_json(*answer.noise.exponent_interval));
  json.set("groups", groups);
  json.set("start", d.start);
  json.set("floor", d.floor);
  json.set("offset", d.offset);
  json.set("exponent", d.exponent);
  json.set("error", answer.fit.error);
  json.set("last_loss", answer.last_loss);
  if (answer.last_noise) json.set("last_noise_scale", *answer.last_noise);
  json.set("ends", ends);
  json.set("target_loss", answer.target_loss);
  json.set("unseen", unseen);
  return json.text();
}

}  // namespace slipway
