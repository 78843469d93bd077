#include "scenarios/commands/growth/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/commands/growth/curves_file.h"
#include "scenarios/commands/growth/interval_bounds.h"
#include "scenarios/commands/growth/training_lines.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"

namespace slipway::scenarios {

namespace {

std::optional<LeftOutErrors> errors_of(const std::vector<LeftOutBatch>& rows) {
  LeftOutErrors sum;
  int predicted = 0;
  for (const LeftOutBatch& row : rows) {
    if (!row.predicted) continue;
    ++predicted;
    sum.predicted += std::abs(*row.predicted / row.measured - 1);
    sum.constant += std::abs(row.constant / row.measured - 1);
  }
  if (predicted == 0) return std::nullopt;
  return LeftOutErrors{sum.predicted / predicted, sum.constant / predicted};
}

// Joins intervals of the rates. A rate with an unknown interval adds its value.
std::optional<Interval> noise_range_of(const FitAnswer& answer) {
  std::optional<Interval> range = answer.fit.parameters.back().interval;
  if (!range) return range;
  for (const OneRate& rate : answer.by_rate) {
    if (!rate.noise_tokens) continue;
    const Interval own = rate.interval.value_or(Interval{*rate.noise_tokens, *rate.noise_tokens});
    range = Interval{std::min(range->least, own.least), std::max(range->most, own.most)};
  }
  return range;
}

void check_target_is_reached(const FitAnswer& answer) {
  const std::vector<LossCurve>& curves = answer.file.curves;
  if (std::any_of(curves.begin(), curves.end(),
                  [&](const LossCurve& curve) { return measured_tokens_to(curve, answer.target_loss).has_value(); }))
    return;
  Interval losses{curves[0].points[0].loss, 0};
  for (const LossCurve& curve : curves)
    for (const CurvePoint& point : curve.points)
      losses = {std::min(losses.least, point.loss), std::max(losses.most, point.loss)};
  throw UsageError(
      fmt::format("{}: no run falls from above to --target {:g}; allowed: a loss between those of a run, which go from "
                  "{:.4g} down to {:.4g}",
                  answer.file.path, answer.target_loss, losses.most, losses.least));
}

std::string value_text(const FittedDynamic& parameter, double value) {
  if (parameter.unit == "tokens") return tokens_text(value);
  return fmt::format("{:.4g}{}", value, parameter.unit.empty() ? "" : " " + parameter.unit);
}

std::string range_text(const Interval& interval) {
  return readable_count(interval.least) + " to " + readable_count(interval.most);
}

std::string no_interval_text(std::size_t submissions) {
  constexpr std::size_t least = 3;
  return submissions < least ? counted(static_cast<std::int64_t>(submissions), "submission")
                             : "without one submission the others cannot be fitted";
}

std::string signed_share(double share) { return fmt::format("{:+.1f} %", 100 * share); }

// `submissions`: to which the fit is.
Description<FittedDynamic> parameter_keys(std::size_t submissions) {
  return Description<FittedDynamic>()
      .key("name", "text", "what was fitted", &FittedDynamic::name)
      .column("")
      .key("unit", "text", "of the value; empty: none", &FittedDynamic::unit)
      .key("value", "its own", "as fitted", &FittedDynamic::value)
      .wide_column("fitted", [](const FittedDynamic& parameter) { return value_text(parameter, parameter.value); })
      .key("sure", "bool", "true if it is known within a factor of three either way; false without an interval",
           &FittedDynamic::is_known)
      .key("interval", "list",
           "[least, most], 95 %, jackknife over submissions, if floor and noise_exponent are right; absent "
           "with fewer than three, or where the others of one cannot be fitted",
           [](const FittedDynamic& parameter) { return bounds(parameter.interval); })
      .wide_column("95 % interval", [submissions](const FittedDynamic& parameter) {
        const auto& in = parameter.interval;
        return in ? value_text(parameter, in->least) + " to " + value_text(parameter, in->most)
                  : "unknown: " + no_interval_text(submissions);
      });
}

Description<OneRate> rate_keys() {
  return Description<OneRate>()
      .key("learning_rate", "1", "of these runs", &OneRate::learning_rate)
      .key("batch_sizes", "count", "that have it", &OneRate::batch_sizes)
      .key("submissions", "count", "that have it", &OneRate::submissions)
      .key("noise_scale", "tokens", "of a fit to these runs alone; absent where they cannot be fitted",
           &OneRate::noise_tokens)
      .key("interval", "list", "[least, most], 95 %, of that noise scale; absent where it is unknown",
           [](const OneRate& rate) { return bounds(rate.interval); });
}

struct LeftOut {
  LeftOutBatch row;
  double batch = 0;  // sequences
};

std::vector<LeftOut> left_out_of(const FitAnswer& answer) {
  std::vector<LeftOut> rows;
  for (const LeftOutBatch& row : answer.left_out) rows.push_back({row, row.batch_tokens / answer.file.sequence});
  return rows;
}

std::string tokens_or_unknown(double tokens) { return std::isnan(tokens) ? "unknown" : readable_count(tokens); }

Description<LeftOut> left_out_keys() {
  const auto row = [](auto get) { return of(&LeftOut::row, get); };
  return Description<LeftOut>()
      .key("batch", "sequences", "left out", &LeftOut::batch)
      .column("batch left out", readable_count)
      .key("runs", "count", "of this batch that reach the target", row(&LeftOutBatch::runs))
      .column("runs")
      .key("measured", "tokens", "to the target, median of these runs", row(&LeftOutBatch::measured))
      .column("measured", readable_count)
      .key("predicted", "tokens", "the same by the fit without them; absent where the others cannot be fitted",
           row(&LeftOutBatch::predicted))
      .column("predicted", tokens_or_unknown)
      .only_column("off by",
                   [](const LeftOut& left) {
                     return left.row.predicted ? signed_share(*left.row.predicted / left.row.measured - 1) : "-";
                   })
      .key("constant", "tokens", "the median of the other sizes' medians, a guess without the batch size",
           row(&LeftOutBatch::constant))
      .column("others' median", readable_count)
      .only_column("off by",
                   [](const LeftOut& left) { return signed_share(left.row.constant / left.row.measured - 1); })
      .key("noise_scale", "tokens", "of the fit without them; absent where predicted is",
           row(&LeftOutBatch::noise_tokens))
      .column("noise scale without it", tokens_or_unknown);
}

Description<LeftOutErrors> error_keys() {
  return Description<LeftOutErrors>()
      .key("predicted_error", "0..1", "mean of |predicted / measured - 1|; absent where none is left out",
           &LeftOutErrors::predicted)
      .key("constant_error", "0..1", "mean of |constant / measured - 1|; absent where none is left out",
           &LeftOutErrors::constant);
}

std::string parameters_text(const FitAnswer& answer) {
  std::string text =
      aligned_table(parameter_keys(answer.fit.submissions).table(answer.fit.parameters), "  ") +
      fmt::format(
          "  noise scale at loss {:.4g}; assumed, because such curves cannot determine them: floor {:g} "
          "nats, noise scale {}; the intervals hold if these are right\n",
          answer.fit.dynamics.noise_loss, answer.assumed.floor, power_text(answer.assumed.noise_exponent));
  for (const FittedDynamic& parameter : answer.fit.parameters)
    if (parameter.interval && !parameter.is_known())
      text += "  these curves do not determine the " + parameter.name +
              ": its interval is wider than a factor of three either way\n";
  return text;
}

std::string rate_text(const OneRate& rate) {
  if (rate.batch_sizes < 2) return "unknown: one batch size is not enough";
  if (!rate.noise_tokens) return "unknown: " + std::to_string(rate.points) + " losses are too few";
  return fmt::format(
      "{} ({}), of {} batch sizes", tokens_text(*rate.noise_tokens),
      rate.interval ? range_text(*rate.interval) : "interval unknown: " + no_interval_text(rate.submissions),
      rate.batch_sizes);
}

std::string rates_text(const FitAnswer& answer) {
  if (answer.by_rate.empty()) return "";
  std::string text =
      "\nLearning rates differ, and the fit ignores them. Noise scale from runs of one rate "
      "alone:\n";
  for (const OneRate& rate : answer.by_rate) text += fmt::format("  {:g}: {}\n", rate.learning_rate, rate_text(rate));
  if (!answer.noise_range) return text;
  const bool all_known = std::all_of(answer.by_rate.begin(), answer.by_rate.end(),
                                     [](const OneRate& rate) { return rate.interval.has_value(); });
  return text + fmt::format("  joined with the interval above: {} tokens{}\n", range_text(*answer.noise_range),
                            all_known ? "" : ", without the unknown intervals");
}

std::string none_left_out_text(const FitAnswer& answer) {
  if (batch_sizes(answer.file.curves).size() < 3)
    return "\nFewer than three batch sizes: none can be left out to test its prediction.\n";
  return fmt::format(
      "\nFewer than two batch sizes fall to loss {:.4g} (--target): none can be left out to test "
      "its prediction.\n",
      answer.target_loss);
}

std::string left_out_text(const FitAnswer& answer) {
  if (answer.left_out.empty()) return none_left_out_text(answer);
  std::vector<std::vector<std::string>> rows = left_out_keys().table(left_out_of(answer));
  if (answer.errors)
    rows.push_back({"mean of |off by|", "", "", "", readable_share(answer.errors->predicted), "",
                    readable_share(answer.errors->constant), ""});
  return fmt::format(
             "\nTokens to loss {:.4g} of batch sizes that the fit has not seen, beside the median of the "
             "other batch sizes:\n",
             answer.target_loss) +
         aligned_table(rows, "  ");
}

std::set<double> sizes_of(const FitAnswer& answer) {
  std::set<double> sizes;
  for (const LossCurve& curve : answer.file.curves) sizes.insert(curve.batch_tokens / answer.file.sequence);
  return sizes;
}

std::string scenario_text(const FitAnswer& answer) {
  const std::set<double> sizes = sizes_of(answer);
  return training_lines(answer.file.path, {*sizes.begin(), *sizes.rbegin()}, reached_by_all(answer.file.curves),
                        answer.fit.dynamics, answer.noise_range);
}

// The known facts about the noise scale, before their consequences.
std::string headline_text(const FitAnswer& answer) {
  const FittedDynamic& noise = answer.fit.parameters.back();
  const std::string value = fmt::format("{}, {} sequences", tokens_text(noise.value),
                                        readable_count(std::round(noise.value / answer.file.sequence)));
  std::string how_sure = noise.interval ? "95 % interval " + range_text(*noise.interval)
                                        : "interval unknown: " + no_interval_text(answer.fit.submissions);
  if (noise.interval && !answer.by_rate.empty())
    how_sure += ", with the runs of one learning rate " + range_text(*answer.noise_range);
  const std::string text =
      noise.is_known()
          ? fmt::format("Noise scale {} ({}): a step with this batch gets half as far as a noiseless one.", value,
                        how_sure)
          : fmt::format("These curves do not determine the noise scale (fitted: {}; {}).", value, how_sure);
  return text + fmt::format(" Median error of {} losses: {:.2g} nats.\n\n",
                            readable_count(static_cast<double>(answer.fit.points)), answer.fit.error);
}

}  // namespace

double reached_by_all(const std::vector<LossCurve>& curves) {
  double highest = 0;
  for (const LossCurve& curve : curves) {
    const auto lowest = std::min_element(curve.points.begin(), curve.points.end(),
                                         [](const CurvePoint& a, const CurvePoint& b) { return a.loss < b.loss; });
    if (lowest != curve.points.end()) highest = std::max(highest, lowest->loss);
  }
  return highest;
}

FitAnswer fitted_curves(CurvesFile file, const FitRequest& request) {
  FitAnswer answer{std::move(file), request.assumed, 0, {}, {}, {}, {}, {}};
  answer.file.curves = curves_after(answer.file.curves, request.from_tokens);
  const std::vector<LossCurve>& curves = answer.file.curves;
  if (curves.empty()) throw UsageError(answer.file.path + ": there is no loss that counts; lower --after");
  try {
    answer.fit = fit_with_intervals(curves, request.assumed);
    const double noise_loss = answer.fit.dynamics.noise_loss;
    answer.target_loss = request.target_loss.value_or(reached_by_all(curves));
    if (request.target_loss) check_target_is_reached(answer);
    answer.by_rate = fits_by_learning_rate(curves, request.assumed, noise_loss);
    answer.left_out = leave_one_batch_out(curves, request.assumed, answer.target_loss, noise_loss);
  } catch (const std::invalid_argument& reason) {
    throw UsageError(answer.file.path + ": " + reason.what());
  }
  answer.errors = errors_of(answer.left_out);
  answer.noise_range = noise_range_of(answer);
  return answer;
}

// The answer of `slipway growth --fit` as JSON.
const Description<FitAnswer>& fit_description() {
  static const Description<FitAnswer> description =
      Description<FitAnswer>()
          .key("curves", "path", "table of losses that was fitted", of(&FitAnswer::file, &CurvesFile::path))
          .key("points", "count", "losses that count", of(&FitAnswer::fit, &DynamicsFit::points))
          .key("error", "nats", "median of |fitted - measured|", of(&FitAnswer::fit, &DynamicsFit::error))
          .list("parameters", "one object per parameter of the fit", of(&FitAnswer::fit, &DynamicsFit::parameters),
                parameter_keys(0))
          .key("noise_loss", "nats", "loss at which the noise scale is given: the median of the points",
               [](const FitAnswer& a) { return a.fit.dynamics.noise_loss; })
          .key("noise_exponent", "-", "assumed exponent of the noise scale by the loss",
               of(&FitAnswer::assumed, &CurveAssumptions::noise_exponent))
          .key("floor", "nats", "assumed lower limit of the loss", of(&FitAnswer::assumed, &CurveAssumptions::floor))
          .key("noise_range", "tokens",
               "list of the least and the most noise scale: its interval joined with those of one learning "
               "rate, and with the value of one whose interval is unknown; absent without its own",
               [](const FitAnswer& a) { return bounds(a.noise_range); })
          .list("by_learning_rate", "one object per learning rate; empty where there is one", &FitAnswer::by_rate,
                rate_keys())
          .key("target_loss", "nats", "of left_out", &FitAnswer::target_loss)
          .list("left_out",
                "one object per batch size, which the fit has not seen; empty with fewer than three sizes, or two that "
                "reach it",
                left_out_of, left_out_keys())
          .include(error_keys(), &FitAnswer::errors);
  return description;
}

// The answer of `slipway growth --fit` as a report, with the lines for a scenario.
std::string fit_text(const FitAnswer& answer) {
  const std::set<double> sizes = sizes_of(answer);
  return fmt::format("{}: {} of {}, {} batch sizes from {} to {} sequences\n\n", answer.file.path,
                     counted(static_cast<std::int64_t>(answer.file.curves.size()), "run"),
                     counted(static_cast<std::int64_t>(answer.fit.submissions), "submission"), sizes.size(),
                     readable_count(*sizes.begin()), readable_count(*sizes.rbegin())) +
         headline_text(answer) + parameters_text(answer) + rates_text(answer) + left_out_text(answer) +
         scenario_text(answer);
}

}  // namespace slipway::scenarios
