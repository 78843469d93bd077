#include "scenarios/growth/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "scenarios/commands/command.h"
#include "scenarios/json_summary.h"
#include "scenarios/language/quantity.h"
#include "scenarios/readable.h"

namespace slipway {
namespace {

// The lowest loss that every run reaches.
double reached_by_all(const std::vector<LossCurve>& curves) {
  double highest = 0;
  for (const LossCurve& curve : curves) {
    const auto lowest =
        std::min_element(curve.points.begin(), curve.points.end(),
                         [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; });
    if (lowest != curve.points.end()) highest = std::max(highest, lowest->loss);
  }
  return highest;
}

double mean_error(const std::vector<LeftOutBatch>& rows, double LeftOutBatch::*guess) {
  double sum = 0;
  for (const LeftOutBatch& row : rows)
    sum += std::abs(row.*guess / row.measured - 1) / static_cast<double>(rows.size());
  return sum;
}

std::optional<Interval> noise_range_of(const FitAnswer& answer) {
  std::optional<Interval> range = answer.fit.parameters.back().interval;
  if (!range) return range;
  for (const OneRate& rate : answer.by_rate)
    if (rate.noise_tokens > 0)
      range = Interval{std::min(range->least, rate.noise_tokens), std::max(range->most, rate.noise_tokens)};
  return range;
}

std::string value_text(const FittedDynamic& parameter, double value) {
  if (parameter.unit == "tokens") return readable_count(value) + " tokens";
  return fmt::format("{:.4g}{}", value, parameter.unit.empty() ? "" : " " + parameter.unit);
}

std::string parameters_text(const FitAnswer& answer) {
  std::vector<std::vector<std::string>> rows{{"", "fitted", "95 % interval"}};
  for (const FittedDynamic& parameter : answer.fit.parameters) {
    const auto& in = parameter.interval;
    rows.push_back({parameter.name, value_text(parameter, parameter.value),
                    in ? value_text(parameter, in->least) + " to " + value_text(parameter, in->most)
                       : "unknown (too few submissions)"});
  }
  std::string text = aligned_table(rows, "  ") + fmt::format(
                                                     "  noise scale at loss {:.4g}; assumed, because such "
                                                     "curves do not tell them: floor {:g} nats, noise "
                                                     "scale ~ loss^-{:.3g}\n",
                                                     answer.fit.dynamics.noise_loss, answer.assumed.floor,
                                                     answer.assumed.noise_exponent);
  for (const FittedDynamic& parameter : answer.fit.parameters)
    if (parameter.interval && !parameter.told())
      text += "  these curves do not tell the " + parameter.name +
              ": its interval is wider than a factor of three either way\n";
  return text;
}

std::string rates_text(const FitAnswer& answer) {
  if (answer.by_rate.empty()) return "";
  std::string text =
      "\nLearning rates differ, and the fit knows nothing of them. Noise scale by runs of one rate "
      "alone:\n";
  for (const OneRate& rate : answer.by_rate)
    text += fmt::format("  {:g}: {}\n", rate.learning_rate,
                        rate.batch_sizes < 2
                            ? "one batch size, which tells none"
                            : fmt::format("{} tokens, of {} batch sizes", readable_count(rate.noise_tokens),
                                          rate.batch_sizes));
  return text;
}

std::string signed_share(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string left_out_text(const FitAnswer& answer) {
  if (answer.left_out.empty())
    return "\nFewer than three batch sizes: none can be left out to see how far its prediction is off.\n";
  std::vector<std::vector<std::string>> rows{{"batch left out", "runs", "measured", "predicted", "off by",
                                              "others' median", "off by", "noise scale without it"}};
  for (const LeftOutBatch& row : answer.left_out)
    rows.push_back({readable_count(row.batch_tokens / answer.file.sequence), std::to_string(row.runs),
                    readable_count(row.measured), readable_count(row.predicted),
                    signed_share(row.predicted / row.measured - 1), readable_count(row.constant),
                    signed_share(row.constant / row.measured - 1), readable_count(row.noise_tokens)});
  rows.push_back({"mean of |off by|", "", "", "", readable_share(answer.predicted_error), "",
                  readable_share(answer.constant_error), ""});
  return fmt::format(
             "\nTokens to loss {:.4g} of batch sizes that the fit has not seen, beside the median of the "
             "other batches:\n",
             answer.target_loss) +
         aligned_table(rows, "  ");
}

std::set<double> sizes_of(const FitAnswer& answer) {
  std::set<double> sizes;
  for (const LossCurve& curve : answer.file.curves) sizes.insert(curve.batch_tokens / answer.file.sequence);
  return sizes;
}

std::string scenario_text(const FitAnswer& answer) {
  const LossDynamics& d = answer.fit.dynamics;
  const std::set<double> sizes = sizes_of(answer);
  std::string text = fmt::format(
      "\nFor a scenario:\n\ntraining:\n  source: {}, by slipway growth --fit\n"
      "  fitted: {{batches: [{:.0f}, {:.0f}], lowest_loss: {:.4g}}}\n"
      "  loss: {{start: {:.5g}, floor: {:g}, offset: {:.4g}, exponent: {:.4g}}}\n  noise: {{scale: {:.4g} "
      "M, at_loss: {:.4g}",
      answer.file.path, *sizes.begin(), *sizes.rbegin(), reached_by_all(answer.file.curves), d.start,
      d.floor, d.offset, d.exponent, d.noise_tokens / 1e6, d.noise_loss);
  if (answer.noise_range)
    text += fmt::format(", least: {:.4g} M, most: {:.4g} M", answer.noise_range->least / 1e6,
                        answer.noise_range->most / 1e6);
  return text + "}\n";
}

nlohmann::json interval_json(const Interval& interval) { return {interval.least, interval.most}; }

}  // namespace

FitAnswer fitted_curves(CurvesFile file, const FitRequest& request) {
  FitAnswer answer{std::move(file), request.assumed, 0, {}, {}, {}, 0, 0, {}};
  const std::vector<LossCurve>& curves = answer.file.curves;
  try {
    answer.fit = fit_with_intervals(curves, request.assumed);
    answer.target_loss = request.target_loss.value_or(reached_by_all(curves));
    answer.by_rate = fits_by_learning_rate(curves, request.assumed);
    answer.left_out = leave_one_batch_out(curves, request.assumed, answer.target_loss);
  } catch (const std::invalid_argument& reason) {
    throw UsageError(answer.file.path + ": " + reason.what());
  }
  answer.predicted_error = mean_error(answer.left_out, &LeftOutBatch::predicted);
  answer.constant_error = mean_error(answer.left_out, &LeftOutBatch::constant);
  answer.noise_range = noise_range_of(answer);
  return answer;
}

std::string fit_text(const FitAnswer& answer) {
  const std::set<double> sizes = sizes_of(answer);
  std::set<std::string> submissions;
  for (const LossCurve& curve : answer.file.curves) submissions.insert(curve.submission);
  std::string text =
      fmt::format("{}: {} of {}, {} batch sizes from {} to {} sequences\n\n", answer.file.path,
                  counted(static_cast<std::int64_t>(answer.file.curves.size()), "run"),
                  counted(static_cast<std::int64_t>(submissions.size()), "submission"), sizes.size(),
                  readable_count(*sizes.begin()), readable_count(*sizes.rbegin()));
  text += fmt::format(
      "Noise scale {} tokens ({} sequences): a step of as much gets half as far as a noiseless one. Median "
      "error of {} losses: {:.2g} nats.\n\n",
      readable_count(answer.fit.dynamics.noise_tokens),
      readable_count(std::round(answer.fit.dynamics.noise_tokens / answer.file.sequence)),
      readable_count(static_cast<double>(answer.fit.points)), answer.fit.error);
  return text + parameters_text(answer) + rates_text(answer) + left_out_text(answer) +
         scenario_text(answer);
}

std::string fit_json(const FitAnswer& answer) {
  JsonSummary json(growth_fit_json_keys());
  json.set("curves", answer.file.path);
  json.set("points", answer.fit.points);
  json.set("error", answer.fit.error);
  nlohmann::json parameters = nlohmann::json::array(), rates = nlohmann::json::array(),
                 rows = nlohmann::json::array();
  for (const FittedDynamic& parameter : answer.fit.parameters) {
    parameters.push_back({{"name", parameter.name}, {"unit", parameter.unit}, {"value", parameter.value}});
    if (parameter.interval) parameters.back()["interval"] = interval_json(*parameter.interval);
  }
  for (const OneRate& rate : answer.by_rate) {
    rates.push_back({{"learning_rate", rate.learning_rate}, {"batch_sizes", rate.batch_sizes}});
    if (rate.noise_tokens > 0) rates.back()["noise_scale"] = rate.noise_tokens;
  }
  for (const LeftOutBatch& row : answer.left_out)
    rows.push_back({{"batch", row.batch_tokens / answer.file.sequence},
                    {"runs", row.runs},
                    {"measured", row.measured},
                    {"predicted", row.predicted},
                    {"constant", row.constant},
                    {"noise_scale", row.noise_tokens}});
  json.set("parameters", parameters);
  json.set("noise_loss", answer.fit.dynamics.noise_loss);
  if (answer.noise_range) json.set("noise_range", interval_json(*answer.noise_range));
  json.set("by_learning_rate", rates);
  json.set("target_loss", answer.target_loss);
  json.set("left_out", rows);
  if (!answer.left_out.empty()) {
    json.set("predicted_error", answer.predicted_error);
    json.set("constant_error", answer.constant_error);
  }
  return json.text();
}

}  // namespace slipway
