#include "models/fit/executed_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "models/fit/least_squares.h"
#include "models/fit/prior_fit.h"
#include "models/trace/statistics.h"

namespace slipway::models {

namespace {

constexpr std::size_t least_steps = 20, least_groups = 4, most_groups = 24, steps_of_a_group = 5;

void check_step(const GradientStep& step) {
  const bool sound = step.batch_tokens > 0 && step.loss > 0 && step.square >= 0 && step.variance >= 0 &&
                     std::isfinite(step.batch_tokens + step.loss + step.square + step.variance);
  if (!sound) throw std::invalid_argument("a step needs a batch and a finite loss above 0, and finite norms from 0 on");
}

// `count` groups of equally many steps, the first ones of one more. Empty where the noise drowns one of them.
std::vector<NoiseGroup> groups_of(std::span<const GradientStep> steps, std::size_t count) {
  std::vector<NoiseGroup> groups;
  for (std::size_t i = 0, first = 0; i < count; ++i) {
    const std::size_t size = steps.size() / count + (i < steps.size() % count ? 1 : 0);
    const std::span<const GradientStep> own = steps.subspan(first, size);
    const std::optional<double> noise = noise_of_group(own);
    if (!noise) return {};
    NoiseGroup group{first, size, 0, 0, *noise};
    for (const GradientStep& step : own) {
      group.loss += step.loss / static_cast<double>(size);
      group.batch_tokens += step.batch_tokens / static_cast<double>(size);
    }
    groups.push_back(group);
    first += size;
  }
  return groups;
}

// The most groups that each have a gradient.
std::vector<NoiseGroup> finest_groups(std::span<const GradientStep> steps) {
  const std::size_t most = std::min(most_groups, steps.size() / steps_of_a_group);
  for (std::size_t count = most; count >= least_groups; --count)
    if (std::vector<NoiseGroup> groups = groups_of(steps, count); !groups.empty()) return groups;
  return {};
}

// A noise of 0 gets a logarithm far below every other.
double log_noise(const NoiseGroup& group) { return std::log(std::max(group.noise_tokens, 1e-12 * group.batch_tokens)); }

// Correlation of residuals in their order, 0 to 0.9. A negative one does not narrow intervals.
double likeness(const std::vector<double>& residuals) {
  double squares = 0, products = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    squares += residuals[i] * residuals[i];
    if (i > 0) products += residuals[i] * residuals[i - 1];
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 0.9) : 0;
}

struct Line {
  double height = 0, slope = 0;  // at the mean of x
  double height_error = 0, slope_error = 0, degrees = 0;
};

// Least squares of y on x with mean 0, with a given or a fitted `slope`.
Line line_through(const std::vector<double>& x, const std::vector<double>& y, std::optional<double> slope) {
  const double n = static_cast<double>(x.size());
  double xx = 0, xy = 0, sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) xx += x[i] * x[i], xy += x[i] * y[i], sum += y[i];
  Line line{sum / n, slope.value_or(xx > 0 ? xy / xx : 0)};
  std::vector<double> residuals;
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    residuals.push_back(y[i] - line.height - line.slope * x[i]);
    squares += residuals.back() * residuals.back();
  }
  const double unknowns = slope ? 1 : 2, r = likeness(residuals), count = n * (1 - r) / (1 + r);
  const double variance = squares / (n - unknowns);
  line.degrees = std::max(1.0, count - unknowns);
  line.height_error = std::sqrt(variance / count);
  line.slope_error = xx > 0 ? std::sqrt(variance / xx * n / count) : std::numeric_limits<double>::infinity();
  return line;
}

}  // namespace

std::optional<double> noise_of_group(std::span<const GradientStep> steps) {
  double trace = 0, signal = 0;
  for (const GradientStep& step : steps) {
    trace += step.batch_tokens * step.variance;
    signal += step.square - step.variance;
  }
  if (!(signal > 0)) return std::nullopt;
  return trace / signal;
}

std::string why_unmeasured(std::span<const GradientStep> steps) {
  if (steps.size() < least_steps)
    return "a noise scale needs the norms of at least " + std::to_string(least_steps) + " steps; there are " +
           std::to_string(steps.size());
  if (finest_groups(steps).empty())
    return "noise drowns the gradient in a quarter of the run or more: train with a larger batch, or with more workers";
  return "";
}

MeasuredNoise measured_noise(std::span<const GradientStep> steps, std::optional<double> exponent) {
  for (const GradientStep& step : steps) check_step(step);
  if (const std::string reason = why_unmeasured(steps); !reason.empty()) throw std::invalid_argument(reason);
  MeasuredNoise noise;
  noise.groups = finest_groups(steps);
  std::vector<double> x, y;
  double mean = 0;
  for (const NoiseGroup& group : noise.groups) mean += std::log(group.loss) / static_cast<double>(noise.groups.size());
  for (const NoiseGroup& group : noise.groups) {
    x.push_back(std::log(group.loss) - mean);
    y.push_back(log_noise(group));
  }
  Line line = line_through(x, y, exponent ? std::optional(-*exponent) : std::nullopt);
  noise.falls = line.slope > 0;
  if (noise.falls) line = line_through(x, y, 0.0);
  const double reach = student_975(static_cast<std::size_t>(line.degrees));
  noise.at_loss = std::exp(mean);
  noise.tokens = std::exp(line.height);
  noise.exponent = 0 - line.slope;
  noise.interval =
      Interval{noise.tokens * std::exp(-reach * line.height_error), noise.tokens * std::exp(reach * line.height_error)};
  if (!exponent && !noise.falls && std::isfinite(line.slope_error))
    noise.exponent_interval =
        Interval{noise.exponent - reach * line.slope_error, noise.exponent + reach * line.slope_error};
  return noise;
}

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
