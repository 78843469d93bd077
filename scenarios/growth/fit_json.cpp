// The answer of `slipway growth --fit` for programs.
#include "scenarios/growth/fit_report.h"
#include "scenarios/growth/interval_json.h"
#include "scenarios/json_summary.h"

namespace slipway {
namespace {

nlohmann::json parameter_json(const FittedDynamic& parameter) {
  nlohmann::json json{{"name", parameter.name},
                      {"unit", parameter.unit},
                      {"value", parameter.value},
                      {"told", parameter.told()}};
  if (parameter.interval) json["interval"] = interval_json(*parameter.interval);
  return json;
}

nlohmann::json rate_json(const OneRate& rate) {
  nlohmann::json json{{"learning_rate", rate.learning_rate},
                      {"batch_sizes", rate.batch_sizes},
                      {"submissions", rate.submissions}};
  if (rate.noise_tokens) json["noise_scale"] = *rate.noise_tokens;
  if (rate.interval) json["interval"] = interval_json(*rate.interval);
  return json;
}

nlohmann::json left_out_json(const LeftOutBatch& row, double sequence) {
  nlohmann::json json{{"batch", row.batch_tokens / sequence},
                      {"runs", row.runs},
                      {"measured", row.measured},
                      {"constant", row.constant}};
  if (row.predicted) json["predicted"] = *row.predicted;
  if (row.noise_tokens) json["noise_scale"] = *row.noise_tokens;
  return json;
}

}  // namespace

std::string fit_json(const FitAnswer& answer) {
  JsonSummary json(growth_fit_json_keys());
  json.set("curves", answer.file.path);
  json.set("points", answer.fit.points);
  json.set("error", answer.fit.error);
  nlohmann::json parameters = nlohmann::json::array(), rates = nlohmann::json::array(),
                 rows = nlohmann::json::array();
  for (const FittedDynamic& parameter : answer.fit.parameters)
    parameters.push_back(parameter_json(parameter));
  for (const OneRate& rate : answer.by_rate) rates.push_back(rate_json(rate));
  for (const LeftOutBatch& row : answer.left_out) rows.push_back(left_out_json(row, answer.file.sequence));
  json.set("parameters", parameters);
  json.set("noise_loss", answer.fit.dynamics.noise_loss);
  json.set("noise_exponent", answer.assumed.noise_exponent);
  json.set("floor", answer.assumed.floor);
  if (answer.noise_range) json.set("noise_range", interval_json(*answer.noise_range));
  json.set("by_learning_rate", rates);
  json.set("target_loss", answer.target_loss);
  json.set("left_out", rows);
  if (answer.errors) {
    json.set("predicted_error", answer.errors->predicted);
    json.set("constant_error", answer.errors->constant);
  }
  return json.text();
}

}  // namespace slipway
