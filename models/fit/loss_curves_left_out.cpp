// What fits without a submission, a batch size or a learning rate say of the fit of all.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "models/fit/loss_curves.h"
#include "models/fit/student.h"
#include "models/statistics.h"

namespace slipway {
namespace {

// With its values by fits without one submission each.
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

// What the fit's noise scale, and its interval, are multiplied by at another loss.
double at_loss(const DynamicsFit& fit, double loss) {
  return noise_scale_at(fit.dynamics, loss) / fit.dynamics.noise_tokens;
}

}  // namespace

DynamicsFit fit_with_intervals(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed) {
  DynamicsFit fit = fit_dynamics(curves, assumed);
  constexpr std::size_t least_submissions = 3;
  if (fit.submissions < least_submissions) return fit;
  std::vector<std::vector<double>> without(fit.parameters.size());
  for (const std::string& left_out : submissions_of(curves)) {
    const auto rest = those(curves, [&](const LossCurve& curve) { return curve.submission != left_out; });
    if (!why_unfit(rest, assumed).empty()) return fit;
    DynamicsFit one = fit_dynamics(rest, assumed);
    // At the loss of the whole fit: its own is the median of other points.
    one.parameters.back().value *= at_loss(one, fit.dynamics.noise_loss);
    for (std::size_t i = 0; i < without.size(); ++i) without[i].push_back(one.parameters[i].value);
  }
  for (std::size_t i = 0; i < without.size(); ++i)
    fit.parameters[i].interval = interval_of(fit.parameters[i], without[i]);
  return fit;
}

std::vector<LeftOutBatch> leave_one_batch_out(const std::vector<LossCurve>& curves,
                                              const CurveAssumptions& assumed, double target_loss,
                                              double noise_loss) {
  std::vector<LeftOutBatch> rows;
  const std::set<double> sizes = batch_sizes(curves);
  if (sizes.size() < 3) return rows;
  std::map<double, std::vector<double>> measured;
  for (const LossCurve& curve : curves)
    if (const auto tokens = measured_tokens_to(curve, target_loss))
      measured[curve.batch_tokens].push_back(*tokens);
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

std::vector<OneRate> fits_by_learning_rate(const std::vector<LossCurve>& curves,
                                           const CurveAssumptions& assumed, double noise_loss) {
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
      if (const auto& in = fit.parameters.back().interval)
        one.interval = Interval{in->least * there, in->most * there};
    }
    fits.push_back(one);
  }
  return fits;
}

}  // namespace slipway
