#include "models/training/norm_test.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace slipway::models {

namespace {

constexpr double rounding = 1e-4;  // of sums of squares in float32

void check(const GradientNorms& norms) {
  if (norms.workers < 2)
    throw std::invalid_argument("the norm test compares the gradients of at least 2 data parallel workers, not of " +
                                std::to_string(norms.workers));
  const bool finite = std::isfinite(norms.sum_of_squares) && std::isfinite(norms.square_of_mean);
  if (!finite || norms.sum_of_squares < 0 || norms.square_of_mean < 0)
    throw std::invalid_argument("squared gradient norms must be finite and not negative");
  if (static_cast<double>(norms.workers) * norms.square_of_mean > norms.sum_of_squares * (1 + rounding))
    throw std::invalid_argument(
        "the mean of the workers' gradients is longer than they allow: these norms are not of one step");
}

void check_eta(double eta) {
  if (!(eta > 0)) throw std::invalid_argument("the norm test needs an eta above 0");
}

}  // namespace

double gradient_variance(const GradientNorms& norms) {
  check(norms);
  const auto workers = static_cast<double>(norms.workers);
  return std::max(0.0, norms.sum_of_squares - workers * norms.square_of_mean) / (workers * (workers - 1));
}

bool passes_norm_test(const GradientNorms& norms, double eta) {
  check_eta(eta);
  return gradient_variance(norms) <= eta * eta * norms.square_of_mean;
}

double batch_by_norm_test(std::int64_t batch, const GradientNorms& norms, double eta) {
  if (passes_norm_test(norms, eta)) return static_cast<double>(batch);
  if (norms.square_of_mean == 0) return std::numeric_limits<double>::infinity();
  return std::ceil(static_cast<double>(batch) * gradient_variance(norms) / (eta * eta * norms.square_of_mean));
}

GradientNorms expected_norms(double batch, double noise_scale, std::int64_t workers) {
  const double noise = noise_scale / batch;  // of the mean; a worker's share is a J-th of the batch
  const auto count = static_cast<double>(workers);
  return {workers, count * (1 + count * noise), 1 + noise};
}

double batch_content_with(double noise_scale, double eta) { return std::max(0.0, noise_scale * (1 / (eta * eta) - 1)); }

}  // namespace slipway::models
