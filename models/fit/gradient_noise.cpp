#include "models/fit/gradient_noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "models/fit/student.h"

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

}  // namespace slipway::models
