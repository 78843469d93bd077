// Runs with known gradient noise and loss. Each worker's gradient is drawn around a true one, and the norm test's
// measurements are summed by their definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "models/fit/gradient_noise.h"

namespace slipway::test {

struct DrawnRun {
  LossDynamics truth;
  int workers = 4;
  int dimensions = 40;
  double scatter = 0;  // of a loss, relative
};

// Norms of one step's gradient, ‖G‖² = 1.
inline void draw_norms(GradientStep& step, double noise_tokens, const DrawnRun& run, std::mt19937_64& random) {
  const int workers = run.workers;
  std::normal_distribution<double> normal(0, std::sqrt(noise_tokens / step.batch_tokens * workers / run.dimensions));
  double of_workers = 0;
  for (int i = 0; i < run.dimensions; ++i) {
    double sum = 0;
    for (int j = 0; j < workers; ++j) {
      const double value = (i == 0 ? 1.0 : 0.0) + normal(random);
      sum += value;
      of_workers += value * value;
    }
    step.square += sum / workers * sum / workers;
  }
  step.variance = (of_workers - workers * step.square) / (workers * (workers - 1.0));
}

// A step for each batch. Its loss is that of the noiseless steps before it, summed here after McCandlish et al. 2018.
inline std::vector<GradientStep> drawn_run(const DrawnRun& run, const std::vector<double>& batches,
                                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<GradientStep> steps;
  double noiseless = 0;
  for (const double batch : batches) {
    const LossDynamics& d = run.truth;
    const double loss = d.floor + (d.start - d.floor) * std::pow(1 + noiseless / d.offset, -d.exponent);
    const double noise = d.noise_tokens * std::pow(d.noise_loss / loss, d.noise_exponent);
    GradientStep step{batch, loss * (1 + run.scatter * normal(random)), 0, 0};
    draw_norms(step, noise, run, random);
    steps.push_back(step);
    noiseless += 1 / (1 + noise / batch);
  }
  return steps;
}

}  // namespace slipway::test
