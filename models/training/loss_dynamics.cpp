#include "models/training/loss_dynamics.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace slipway::models {

void check_dynamics(const LossDynamics& d) {
  const bool positive = d.start > 0 && d.offset > 0 && d.exponent > 0 && d.noise_tokens > 0 && d.noise_loss > 0;
  const bool finite = std::isfinite(d.start) && std::isfinite(d.offset) && std::isfinite(d.exponent) &&
                      std::isfinite(d.noise_tokens) && std::isfinite(d.noise_loss) && std::isfinite(d.noise_exponent);
  if (!positive || !finite || !(d.floor >= 0 && d.floor < d.start) || !(d.noise_exponent >= 0))
    throw std::invalid_argument(
        "a loss falls from its start to a floor below, with an offset, an exponent and a noise scale above "
        "0");
}

double loss_after(const LossDynamics& d, double noiseless_steps) {
  return d.floor + (d.start - d.floor) * std::exp(-d.exponent * std::log1p(noiseless_steps / d.offset));
}

double noiseless_steps_to(const LossDynamics& d, double loss) {
  if (loss >= d.start) return 0;
  if (loss <= d.floor) return std::numeric_limits<double>::infinity();
  return d.offset * std::expm1(-std::log((loss - d.floor) / (d.start - d.floor)) / d.exponent);
}

double noise_scale_at(const LossDynamics& d, double loss) {
  return d.noise_tokens * std::pow(d.noise_loss / loss, d.noise_exponent);
}

double tokens_per_noiseless_step(const LossDynamics& d, double batch_tokens, double loss) {
  return batch_tokens + noise_scale_at(d, loss);
}

// ∫ (batch + B) dS by Simpson's rule over v = ln(1 + S/offset), in which the loss is an exponential.
double tokens_to(const LossDynamics& d, double batch_tokens, double loss) {
  const double noiseless = noiseless_steps_to(d, loss);
  if (!std::isfinite(noiseless)) return noiseless;
  constexpr int pieces = 2000;
  const double width = std::log1p(noiseless / d.offset) / pieces;
  double sum = 0;
  for (int i = 0; i <= pieces; ++i) {
    const double weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2, v = width * i;
    const double there = d.floor + (d.start - d.floor) * std::exp(-d.exponent * v);
    sum += weight * std::exp(v) * tokens_per_noiseless_step(d, batch_tokens, there);
  }
  return d.offset * sum * width / 3;
}

// Tokens to a loss are the offset times an integral that does not contain the offset.
LossDynamics with_noise(LossDynamics d, double scale_tokens, double batch_tokens, double loss) {
  const double measured = tokens_to(d, batch_tokens, loss);
  d.noise_tokens = scale_tokens;
  d.offset *= measured / tokens_to(d, batch_tokens, loss);
  return d;
}

double progress_of_step(double batch, double noise_scale) { return batch / (batch + noise_scale); }

}  // namespace slipway::models
