#include "models/fit/executed_run.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/fit/prior_fit.h"
#include "models/trace/statistics.h"

namespace slipway::models {

namespace {

constexpr std::size_t least_losses = 8;

LossDynamics with_noise_of(const MeasuredNoise& noise, double floor) {
  LossDynamics dynamics;
  dynamics.floor = floor;
  dynamics.noise_tokens = noise.tokens;
  dynamics.noise_loss = noise.at_loss;
  dynamics.noise_exponent = noise.exponent;
  return dynamics;
}

// Noiseless steps done after each step.
std::vector<double> noiseless_steps_of(std::span<const GradientStep> steps, const LossDynamics& noise) {
  std::vector<double> behind;
  double sum = 0;
  for (const GradientStep& step : steps) {
    behind.push_back(sum);
    sum += progress_of_step(step.batch_tokens, noise_scale_at(noise, step.loss));
  }
  return behind;
}

// Relative scatter from one step to the next, the measure of a residual. A run without scatter gets that of rounding.
double scatter_of(std::span<const GradientStep> steps) {
  constexpr double least = 1e-5, sigma_of_median = 1.4826;
  std::vector<double> changes;
  for (std::size_t i = 1; i < steps.size(); ++i)
    changes.push_back(std::abs(std::log(steps[i].loss / steps[i - 1].loss)));
  return std::max(least, sigma_of_median * median(changes) / std::sqrt(2.0));
}

// start − floor, offset, exponent: as wide as those of loss_curves.cpp, and from the same sources.
std::vector<PriorParameter> priors_of(std::span<const GradientStep> steps, double noiseless, double floor) {
  constexpr double wide = 3, kaplan_exponent = 0.76;
  const auto highest =
      std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
  return {{highest->loss - floor, wide}, {noiseless, wide}, {kaplan_exponent, wide}};
}

void set_law(LossDynamics& dynamics, std::span<const double> values) {
  dynamics.start = dynamics.floor + values[0];
  dynamics.offset = values[1];
  dynamics.exponent = values[2];
}

}  // namespace

RunFit fit_run(std::span<const GradientStep> steps, std::size_t from, const MeasuredNoise& noise, double floor) {
  if (steps.size() < from + least_losses)
    throw std::invalid_argument("three unknowns need the losses of at least eight steps");
  const std::span<const GradientStep> counting = steps.subspan(from);
  std::vector<double> measured;
  for (const GradientStep& step : counting) measured.push_back(step.loss);
  if (!(floor >= 0 && floor < *std::min_element(measured.begin(), measured.end())))
    throw std::invalid_argument("the floor must lie below every loss of the run");
  LossDynamics dynamics = with_noise_of(noise, floor);
  const std::vector<double> behind = noiseless_steps_of(steps, dynamics);
  const PredictRows predict = [&](std::span<const double> values) {
    set_law(dynamics, values);
    std::vector<double> losses;
    for (std::size_t i = from; i < behind.size(); ++i) losses.push_back(loss_after(dynamics, behind[i]));
    return losses;
  };
  PriorFitOptions options;
  options.scale = scatter_of(counting);
  options.most_rounds = 300;
  const PriorFit fit = fit_with_priors(priors_of(counting, behind.back(), floor), measured, predict, options);
  const std::vector<double> fitted = predict(fit.values);
  std::vector<double> errors;
  for (std::size_t i = 0; i < fitted.size(); ++i) errors.push_back(std::abs(fitted[i] / measured[i] - 1));
  return {dynamics, median(errors)};
}

std::vector<double> predicted_losses(const LossDynamics& dynamics, std::span<const double> batch_tokens) {
  std::vector<double> losses;
  double noiseless = 0;
  for (const double batch : batch_tokens) {
    losses.push_back(loss_after(dynamics, noiseless));
    noiseless += progress_of_step(batch, noise_scale_at(dynamics, losses.back()));
  }
  return losses;
}

double mean_loss(std::span<const GradientStep> steps, std::size_t first, std::size_t count) {
  double sum = 0;
  for (const GradientStep& step : steps.subspan(first, count)) sum += step.loss;
  return sum / static_cast<double>(count);
}

std::optional<double> tokens_to_mean_loss(std::span<const GradientStep> steps, std::size_t window, double loss) {
  double tokens = 0;
  for (std::size_t i = 0; i < window / 2 && i < steps.size(); ++i) tokens += steps[i].batch_tokens;
  for (std::size_t i = 0; i + window <= steps.size(); ++i) {
    if (mean_loss(steps, i, window) <= loss) return i > 0 ? std::optional(tokens) : std::nullopt;
    tokens += steps[i + window / 2].batch_tokens;
  }
  return std::nullopt;
}

std::optional<double> predicted_tokens_to(const LossDynamics& dynamics, std::span<const double> batch_tokens,
                                          double loss) {
  constexpr std::size_t times = 10;
  if (batch_tokens.empty()) return std::nullopt;
  double noiseless = 0, tokens = 0;
  for (std::size_t i = 0; i < times * batch_tokens.size(); ++i) {
    const double now = loss_after(dynamics, noiseless);
    if (now <= loss) return i > 0 ? std::optional(tokens) : std::nullopt;
    const double batch = batch_tokens[std::min(i, batch_tokens.size() - 1)];
    noiseless += progress_of_step(batch, noise_scale_at(dynamics, now));
    tokens += batch;
  }
  return std::nullopt;
}

}  // namespace slipway::models
