// The answer of `slipway growth --fit` for people, with the lines for a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenarios/growth/fit_report.h"
#include "scenarios/growth/training_lines.h"
#include "scenarios/readable.h"
#include "scenarios/training_words.h"

namespace slipway {
namespace {

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

std::string parameters_text(const FitAnswer& answer) {
  std::vector<std::vector<std::string>> rows{{"", "fitted", "95 % interval"}};
  for (const FittedDynamic& parameter : answer.fit.parameters) {
    const auto& in = parameter.interval;
    rows.push_back({parameter.name, value_text(parameter, parameter.value),
                    in ? value_text(parameter, in->least) + " to " + value_text(parameter, in->most)
                       : "unknown: " + no_interval_text(answer.fit.submissions)});
  }
  std::string text =
      aligned_table(rows, "  ") +
      fmt::format(
          "  noise scale at loss {:.4g}; assumed, because such curves do not tell them: floor {:g} "
          "nats, noise scale {}; the intervals hold if these are right\n",
          answer.fit.dynamics.noise_loss, answer.assumed.floor, power_text(answer.assumed.noise_exponent));
  for (const FittedDynamic& parameter : answer.fit.parameters)
    if (parameter.interval && !parameter.told())
      text += "  these curves do not tell the " + parameter.name +
              ": its interval is wider than a factor of three either way\n";
  return text;
}

std::string rate_text(const OneRate& rate) {
  if (rate.batch_sizes < 2) return "one batch size, which tells none";
  if (!rate.noise_tokens)
    return "unknown: " + std::to_string(rate.points) + " losses that count are too few";
  return fmt::format("{} ({}), of {} batch sizes", tokens_text(*rate.noise_tokens),
                     rate.interval ? range_text(*rate.interval)
                                   : "interval unknown: " + no_interval_text(rate.submissions),
                     rate.batch_sizes);
}

std::string rates_text(const FitAnswer& answer) {
  if (answer.by_rate.empty()) return "";
  std::string text =
      "\nLearning rates differ, and the fit knows nothing of them. Noise scale by runs of one rate "
      "alone:\n";
  for (const OneRate& rate : answer.by_rate)
    text += fmt::format("  {:g}: {}\n", rate.learning_rate, rate_text(rate));
  if (!answer.noise_range) return text;
  const bool all_known = std::all_of(answer.by_rate.begin(), answer.by_rate.end(),
                                     [](const OneRate& rate) { return rate.interval.has_value(); });
  return text + fmt::format("  joined with the interval above: {} tokens{}\n",
                            range_text(*answer.noise_range),
                            all_known ? "" : ", which says nothing of the intervals that are unknown");
}

std::string signed_share(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string none_left_out_text(const FitAnswer& answer) {
  if (batch_sizes(answer.file.curves).size() < 3)
    return "\nFewer than three batch sizes: none can be left out to see how far its prediction is off.\n";
  return fmt::format(
      "\nFewer than two batch sizes fall to loss {:.4g} (--target): none can be left out to see how far "
      "its "
      "prediction is off.\n",
      answer.target_loss);
}

std::string left_out_text(const FitAnswer& answer) {
  if (answer.left_out.empty()) return none_left_out_text(answer);
  std::vector<std::vector<std::string>> rows{{"batch left out", "runs", "measured", "predicted", "off by",
                                              "others' median", "off by", "noise scale without it"}};
  for (const LeftOutBatch& row : answer.left_out)
    rows.push_back({readable_count(row.batch_tokens / answer.file.sequence), std::to_string(row.runs),
                    readable_count(row.measured),
                    row.predicted ? readable_count(*row.predicted) : "unknown",
                    row.predicted ? signed_share(*row.predicted / row.measured - 1) : "-",
                    readable_count(row.constant), signed_share(row.constant / row.measured - 1),
                    row.noise_tokens ? readable_count(*row.noise_tokens) : "unknown"});
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

// What is known of the noise scale, before what would follow from it.
std::string headline_text(const FitAnswer& answer) {
  const FittedDynamic& noise = answer.fit.parameters.back();
  const std::string value = fmt::format("{}, {} sequences", tokens_text(noise.value),
                                        readable_count(std::round(noise.value / answer.file.sequence)));
  std::string how_sure = noise.interval ? "95 % interval " + range_text(*noise.interval)
                                        : "interval unknown: " + no_interval_text(answer.fit.submissions);
  if (noise.interval && !answer.by_rate.empty())
    how_sure += ", with the runs of one learning rate " + range_text(*answer.noise_range);
  const std::string text =
      noise.told()
          ? fmt::format("Noise scale {} ({}): a step of as much gets half as far as a noiseless one.",
                        value, how_sure)
          : fmt::format("Noise scale not told by these curves (fitted: {}; {}).", value, how_sure);
  return text + fmt::format(" Median error of {} losses: {:.2g} nats.\n\n",
                            readable_count(static_cast<double>(answer.fit.points)), answer.fit.error);
}

}  // namespace

std::string fit_text(const FitAnswer& answer) {
  const std::set<double> sizes = sizes_of(answer);
  return fmt::format("{}: {} of {}, {} batch sizes from {} to {} sequences\n\n", answer.file.path,
                     counted(static_cast<std::int64_t>(answer.file.curves.size()), "run"),
                     counted(static_cast<std::int64_t>(answer.fit.submissions), "submission"), sizes.size(),
                     readable_count(*sizes.begin()), readable_count(*sizes.rbegin())) +
         headline_text(answer) + parameters_text(answer) + rates_text(answer) + left_out_text(answer) +
         scenario_text(answer);
}

}  // namespace slipway
