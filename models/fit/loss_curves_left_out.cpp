// What fits without a submission, a batch size or a learning rate say of the fit of all.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "models/fit/loss_curves.h"
#include "models/statistics.h"

namespace slipway {
namespace {

// With its values by fits without one submission each.
Interval interval_of(const FittedDynamic& parameter, const std::vector<double>& without) {
  const auto n = static_cast<double>(without.size());
  double mean = 0, squares = 0;
  for (const double one : without) mean += std::log(one) / n;
  for (const double one : without) squares += std::pow(std::log(one) - mean, 2);
  const double reach = 1.96 * std::sqrt((n - 1) / n * squares + parameter.formula * parameter.formula);
  return {parameter.value * std::exp(-reach), parameter.value * std::exp(reach)};
}

template <typename Keep>
std::vector<LossCurve> those(const std::vector<LossCurve>& curves, const Keep& keep) {
  std::vector<LossCurve> kept;
  std::copy_if(curves.begin(), curves.end(), std::back_inserter(kept), keep);
  return kept;
}

std::vector<double> all_tokens_to(const std::vector<LossCurve>& curves, double loss) {
  std::vector<double> tokens;
  for (const LossCurve& curve : curves)
    if (const auto one = measured_tokens_to(curve, loss)) tokens.push_back(*one);
  return tokens;
}

}  // namespace

DynamicsFit fit_with_intervals(const std::vector<LossCurve>& curves, const CurveAssumptions& assumed) {
  DynamicsFit fit = fit_dynamics(curves, assumed);
  std::set<std::string> submissions;
  for (const LossCurve& curve : curves) submissions.insert(curve.submission);
  constexpr std::size_t least_submissions = 3;
  if (submissions.size() < least_submissions) return fit;
  std::vector<std::vector<double>> without(fit.parameters.size());
  for (const std::string& left_out : submissions) {
    const auto rest = those(curves, [&](const LossCurve& curve) { return curve.submission != left_out; });
    if (batch_sizes(rest).size() < 2) return fit;
    const DynamicsFit one = fit_dynamics(rest, assumed);
    std::vector<FittedDynamic> parameters = one.parameters;
    // At the loss of the whole fit: its own is the median of other points.
    parameters.back().value = noise_scale_at(one.dynamics, fit.dynamics.noise_loss);
    for (std::size_t i = 0; i < parameters.size(); ++i) without[i].push_back(parameters[i].value);
  }
  for (std::size_t i = 0; i < without.size(); ++i)
    fit.parameters[i].interval = interval_of(fit.parameters[i], without[i]);
  return fit;
}

std::vector<LeftOutBatch> leave_one_batch_out(const std::vector<LossCurve>& curves,
                                              const CurveAssumptions& assumed, double target_loss) {
  std::vector<LeftOutBatch> rows;
  const std::set<double> sizes = batch_sizes(curves);
  if (sizes.size() < 3) return rows;
  for (const double size : sizes) {
    const auto own = those(curves, [&](const LossCurve& curve) { return curve.batch_tokens == size; });
    const auto rest = those(curves, [&](const LossCurve& curve) { return curve.batch_tokens != size; });
    const std::vector<double> measured = all_tokens_to(own, target_loss),
                              others = all_tokens_to(rest, target_loss);
    if (measured.empty() || others.empty()) continue;
    const LossDynamics dynamics = fit_dynamics(rest, assumed).dynamics;
    rows.push_back({size, static_cast<int>(measured.size()), median(measured),
                    tokens_to(dynamics, size, target_loss), median(others), dynamics.noise_tokens});
  }
  return rows;
}

std::vector<OneRate> fits_by_learning_rate(const std::vector<LossCurve>& curves,
                                           const CurveAssumptions& assumed) {
  std::set<double> rates;
  for (const LossCurve& curve : curves) rates.insert(curve.learning_rate);
  std::vector<OneRate> fits;
  if (rates.size() < 2) return fits;
  for (const double rate : rates) {
    const auto own = those(curves, [&](const LossCurve& curve) { return curve.learning_rate == rate; });
    const std::size_t sizes = batch_sizes(own).size();
    fits.push_back({rate, sizes < 2 ? 0 : fit_dynamics(own, assumed).dynamics.noise_tokens, sizes});
  }
  return fits;
}

}  // namespace slipway
