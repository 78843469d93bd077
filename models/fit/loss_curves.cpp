#include "models/fit/loss_curves.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>

#include "models/fit/prior_fit.h"
#include "models/fit/student.h"
#include "models/trace/statistics.h"

namespace slipway::models {

namespace {

// dS/d(tokens) for a batch of b tokens.
double progress_per_token(const LossDynamics& d, double batch, double noiseless) {
  return 1 / tokens_per_noiseless_step(d, batch, loss_after(d, noiseless));
}

// Runge and Kutta's fourth order.
double advanced(const LossDynamics& d, double batch, double s, double tokens) {
  const double k1 = progress_per_token(d, batch, s), k2 = progress_per_token(d, batch, s + tokens / 2 * k1);
  const double k3 = progress_per_token(d, batch, s + tokens / 2 * k2),
               k4 = progress_per_token(d, batch, s + tokens * k3);
  return s + tokens / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

std::vector<double> losses_of(const std::vector<LossCurve>& curves) {
  std::vector<double> losses;
  for (const LossCurve& curve : curves)
    for (const CurvePoint& point : curve.points) losses.push_back(point.loss);
  return losses;
}

// No model that predicts tokens has a loss above the logarithm of its vocabulary for long; beyond these a fit of hundreds
// of rounds follows one number.
constexpr double most_loss = 1000, most_tokens = 1e18;

void check_curve(const LossCurve& curve) {
  double before = 0;
  const bool batch = curve.batch_tokens > 0 && curve.batch_tokens <= most_tokens;
  for (const CurvePoint& point : curve.points) {
    if (!batch || !(point.tokens > before && point.tokens <= most_tokens) ||
        !(point.loss > 0 && point.loss <= most_loss))
      throw std::invalid_argument(
          "a curve of " + curve.submission +
          " needs a batch, and losses above 0 and up to 1,000 nats at growing numbers of tokens");
    before = point.tokens;
  }
}

// start − floor, offset, exponent, noise scale, at the median loss of the points.
enum Unknown : std::size_t { above_floor, offset, exponent, noise, unknowns };

LossDynamics dynamics_of(std::span<const double> values, const CurveAssumptions& assumed, double at_loss) {
  LossDynamics d;
  d.floor = assumed.floor;
  d.start = assumed.floor + values[above_floor];
  d.offset = values[offset];
  d.exponent = values[exponent];
  d.noise_tokens = values[noise];
  d.noise_loss = at_loss;
  d.noise_exponent = assumed.noise_exponent;
  return d;
}

constexpr double wide = 3;  // standard deviation of ln, for priors

// Wide priors, factors of e³ = 20 either way: where points have information, they decide. Noise and exponent: Kaplan et
// al. 2020; offset: as many noiseless steps as the longest curve takes.
std::vector<PriorParameter> priors_of(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed,
                                      const std::vector<double>& losses, double at_loss) {
  constexpr double kaplan_tokens = 2e8, kaplan_exponent = 0.76;
  double longest = 0;
  for (const LossCurve& curve : curves)
    if (!curve.points.empty()) longest = std::max(longest, curve.points.back().tokens);
  const double noise_tokens = kaplan_tokens / std::pow(at_loss, kaplan_noise_exponent);
  const double highest = *std::max_element(losses.begin(), losses.end());
  return {{highest - assumed.floor, wide},
          {longest / (*batch_sizes(curves).begin() + noise_tokens), wide},
          {kaplan_exponent, wide},
          {noise_tokens, wide}};
}

double median_error(const std::vector<LossCurve>& curves, const LossDynamics& dynamics) {
  std::vector<double> errors;
  for (const LossCurve& curve : curves) {
    const std::vector<double> fitted = losses_along(dynamics, curve);
    for (std::size_t i = 0; i < fitted.size(); ++i) errors.push_back(std::abs(fitted[i] - curve.points[i].loss));
  }
  return median(errors);
}

// The start's error is that of its distance from the floor.
std::vector<FittedDynamic> parameters_of(const LossDynamics& d, std::span<const double> formula) {
  const double of_start = formula[above_floor] * (d.start - d.floor) / d.start;
  return {{"start", "nats", d.start, of_start, {}},
          {"offset", "steps", d.offset, formula[offset], {}},
          {"exponent", "", d.exponent, formula[exponent], {}},
          {"noise scale", "tokens", d.noise_tokens, formula[noise], {}}};
}

// Interval of a parameter, from its values by fits without one submission each.
Interval interval_of(const FittedDynamic& parameter, const std::vector<double>& without) {
  const auto n = static_cast<double>(without.size());
  double mean = 0, squares = 0;
  for (const double one : without) mean += std::log(one) / n;
  for (const double one : without) squares += std::pow(std::log(one) - mean, 2);
  const double error = std::sqrt((n - 1) / n * squares + parameter.formula * parameter.formula),
               reach = student_975(without.size() - 1) * error;
  return {parameter.value * std::exp(-reach), parameter.value * std::exp(reach)};
}

template <typename Keep>
std::vector<LossCurve> those(const std::vector<LossCurve>& curves, const Keep& keep) {
  std::vector<LossCurve> kept;
  std::copy_if(curves.begin(), curves.end(), std::back_inserter(kept), keep);
  return kept;
}

// Factor on the fit's noise scale, and on its interval, at another loss.
double at_loss(const DynamicsFit& fit, double loss) {
  return noise_scale_at(fit.dynamics, loss) / fit.dynamics.noise_tokens;
}

}  // namespace

std::vector<LossCurve> curves_after(const std::vector<LossCurve>& curves, double tokens) {
  std::vector<LossCurve> kept;
  for (LossCurve curve : curves) {
    std::erase_if(curve.points, [&](const CurvePoint& point) { return point.tokens < tokens; });
    if (!curve.points.empty()) kept.push_back(std::move(curve));
  }
  return kept;
}

std::set<double> batch_sizes(const std::vector<LossCurve>& curves) {
  std::set<double> sizes;
  for (const LossCurve& curve : curves) sizes.insert(curve.batch_tokens);
  return sizes;
}

std::set<std::string> submissions_of(const std::vector<LossCurve>& curves) {
  std::set<std::string> submissions;
  for (const LossCurve& curve : curves) submissions.insert(curve.submission);
  return submissions;
}

std::vector<double> losses_along(const LossDynamics& dynamics, const LossCurve& curve) {
  std::vector<double> losses;
  double noiseless = 0, tokens = 0;
  for (const CurvePoint& point : curve.points) {
    // Between two points the noise scale hardly moves; before the first there may be much.
    const int pieces = tokens > 0 ? 1 : 8;
    for (int i = 0; i < pieces; ++i)
      noiseless = advanced(dynamics, curve.batch_tokens, noiseless, (point.tokens - tokens) / pieces);
    tokens = point.tokens;
    losses.push_back(loss_after(dynamics, noiseless));
  }
  return losses;
}

std::string why_unfit(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed) {
  constexpr std::size_t least_points = 8;
  const std::vector<double> losses = losses_of(curves);
  if (batch_sizes(curves).size() < 2)
    return "curves of one batch size do not determine the noise scale: two or more are needed";
  if (losses.size() < least_points)
    return "four unknowns need at least eight points; there are " + std::to_string(losses.size());
  if (!(assumed.floor >= 0 && assumed.floor < *std::min_element(losses.begin(), losses.end())))
    return "the floor must lie below every loss of the curves";
  return "";
}

DynamicsFit fit_dynamics(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed) {
  for (const LossCurve& curve : curves) check_curve(curve);
  if (const std::string reason = why_unfit(curves, assumed); !reason.empty()) throw std::invalid_argument(reason);
  const std::vector<double> measured = losses_of(curves);
  const double at_loss = median(measured);
  const PredictRows predict = [&](std::span<const double> values) {
    const LossDynamics dynamics = dynamics_of(values, assumed, at_loss);
    std::vector<double> losses;
    for (const LossCurve& curve : curves) {
      const std::vector<double> along = losses_along(dynamics, curve);
      losses.insert(losses.end(), along.begin(), along.end());
    }
    return losses;
  };
  PriorFitOptions options;
  options.scale = 3e-4;  // of a loss: between runs that differ in their seed; spikes of a run pull linearly
  options.most_rounds = 300;
  const PriorFit fit = fit_with_priors(priors_of(curves, assumed, measured, at_loss), measured, predict, options);
  DynamicsFit answer{dynamics_of(fit.values, assumed, at_loss), {}, 0, measured.size(), submissions_of(curves).size()};
  std::vector<double> formula;
  for (const double remaining : fit.remaining_spread) formula.push_back(remaining * wide);
  answer.parameters = parameters_of(answer.dynamics, formula);
  answer.error = median_error(curves, answer.dynamics);
  return answer;
}

std::optional<double> measured_tokens_to(const LossCurve& curve, double loss) {
  for (std::size_t i = 0; i + 1 < curve.points.size(); ++i) {
    const CurvePoint &a = curve.points[i], &b = curve.points[i + 1];
    if (a.loss > loss && b.loss <= loss) return a.tokens + (b.tokens - a.tokens) * (a.loss - loss) / (a.loss - b.loss);
  }
  return std::nullopt;
}

// Comparison of the fit of all with fits without a submission, a batch size or a learning rate.

DynamicsFit fit_with_intervals(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed) {
  DynamicsFit fit = fit_dynamics(curves, assumed);
  constexpr std::size_t least_submissions = 3;
  if (fit.submissions < least_submissions) return fit;
  std::vector<std::vector<double>> without(fit.parameters.size());
  for (const std::string& left_out : submissions_of(curves)) {
    const auto rest = those(curves, [&](const LossCurve& curve) { return curve.submission != left_out; });
    if (!why_unfit(rest, assumed).empty()) return fit;
    DynamicsFit one = fit_dynamics(rest, assumed);
    // At the loss of the whole fit, because its own is the median of other points.
    one.parameters.back().value *= at_loss(one, fit.dynamics.noise_loss);
    for (std::size_t i = 0; i < without.size(); ++i) without[i].push_back(one.parameters[i].value);
  }
  for (std::size_t i = 0; i < without.size(); ++i)
    fit.parameters[i].interval = interval_of(fit.parameters[i], without[i]);
  return fit;
}

std::vector<LeftOutBatch> leave_one_batch_out(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed,
                                              double target_loss, double noise_loss) {
  std::vector<LeftOutBatch> rows;
  const std::set<double> sizes = batch_sizes(curves);
  if (sizes.size() < 3) return rows;
  std::map<double, std::vector<double>> measured;
  for (const LossCurve& curve : curves)
    if (const auto tokens = measured_tokens_to(curve, target_loss)) measured[curve.batch_tokens].push_back(*tokens);
  if (measured.size() < 2) return rows;
  for (const auto& [size, tokens] : measured) {
    std::vector<double> others;
    for (const auto& [other, its_tokens] : measured)
      if (other != size) others.push_back(median(its_tokens));
    LeftOutBatch row{size, static_cast<int>(tokens.size()), median(tokens), median(others), {}, {}};
    const auto rest = those(curves, [&](const LossCurve& curve) { return curve.batch_tokens != size; });
    if (why_unfit(rest, assumed).empty()) {
      const LossDynamics dynamics = fit_dynamics(rest, assumed).dynamics;
      row.predicted = tokens_to(dynamics, size, target_loss);
      row.noise_tokens = noise_scale_at(dynamics, noise_loss);
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<OneRate> fits_by_learning_rate(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed,
                                           double noise_loss) {
  std::map<double, std::vector<LossCurve>> by_rate;
  for (const LossCurve& curve : curves) by_rate[curve.learning_rate].push_back(curve);
  std::vector<OneRate> fits;
  if (by_rate.size() < 2) return fits;
  for (const auto& [rate, own] : by_rate) {
    OneRate one{rate, batch_sizes(own).size(), 0, submissions_of(own).size(), {}, {}};
    for (const LossCurve& curve : own) one.points += curve.points.size();
    if (why_unfit(own, assumed).empty()) {
      const DynamicsFit fit = fit_with_intervals(own, assumed);
      const double there = at_loss(fit, noise_loss);
      one.noise_tokens = fit.dynamics.noise_tokens * there;
      if (const auto& in = fit.parameters.back().interval) one.interval = Interval{in->least * there, in->most * there};
    }
    fits.push_back(one);
  }
  return fits;
}

}  // namespace slipway::models
