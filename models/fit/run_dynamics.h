// How the loss of one executed run falls, whose gradient noise was measured (measured_noise.h), and what that says of other
// runs.
//
//   S_k        = Σ_{i<k} 1/(1 + B(L_i)/b_i)        noiseless steps behind step k, by the measured losses and batches
//   L(S)         start, offset, exponent            fitted to the losses L_k, with wide priors (prior_fit.h)
//   prediction   S ← S + 1/(1 + B(L(S))/b)          step by step, by the fit alone: another run, or this one's end
//
// Curves of several constant batches tell the noise scale by the tokens that they need (loss_curves.h); here it is measured
// and only the law of the loss is fitted. Whether the gradient's noise is what slows a training down is what a run
// that the fit has not seen shows. Guarded by tests/run_dynamics_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/fit/measured_noise.h"

namespace slipway {

struct RunFit {
  LossDynamics dynamics;
  double error = 0;  // median of |fitted − measured|/measured
};

// `steps`: from the run's beginning; those before `from` are counted but their losses do not. Throws
// std::invalid_argument where fewer than eight are left, and for a floor that is not below all that count.
RunFit fit_run(std::span<const GradientStep> steps, std::size_t from, const MeasuredNoise& noise, double floor);

// The loss before each step of a run with these batches, tokens.
std::vector<double> predicted_losses(const LossDynamics& dynamics, std::span<const double> batch_tokens);

// The mean loss of steps [first, first + count).
double mean_loss(std::span<const GradientStep> steps, std::size_t first, std::size_t count);
// Tokens when the mean over `window` steps first is not above `loss`: those before the window's middle. Nothing where it
// never is, or is so from the beginning.
std::optional<double> tokens_to_mean_loss(std::span<const GradientStep> steps, std::size_t window, double loss);
// The same by the dynamics, which goes on with the last batch for up to ten times as many steps.
std::optional<double> predicted_tokens_to(const LossDynamics& dynamics, std::span<const double> batch_tokens, double loss);

}  // namespace slipway
