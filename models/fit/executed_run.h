// The fall of one executed run's loss with measured gradient noise, and its prediction for other runs.
//
//   S_k        = Σ_{i<k} 1/(1 + B(L_i)/b_i)        noiseless steps before step k, from the measured losses and batches
//   L(S)         start, offset, exponent            fitted to the losses L_k, with wide priors (prior_fit.h)
//   prediction   S ← S + 1/(1 + B(L(S))/b)          step by step, by the fit alone: another run, or this one's end
//
// Curves of several constant batches give the noise scale by the tokens that they need (loss_curves.h). Here it is
// measured, and only the law of the loss is fitted. Only a run that the fit has not used can show whether gradient
// noise slows the training down. Guarded by tests/models/executed_run_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "models/fit/gradient_noise.h"
#include "models/training/loss_dynamics.h"

namespace slipway::models {

struct RunFit {
  LossDynamics dynamics;
  double error = 0;  // median of |fitted − measured|/measured
};

// `steps`: from the run's beginning. Steps before `from` add progress, but their losses are not fitted. Throws
// std::invalid_argument if fewer than eight are left, and for a floor that is not below all fitted losses.
RunFit fit_run(std::span<const GradientStep> steps, std::size_t from, const MeasuredNoise& noise, double floor);

// The loss before each step of a run with these batches, in tokens.
std::vector<double> predicted_losses(const LossDynamics& dynamics, std::span<const double> batch_tokens);

// The mean loss of steps [first, first + count).
double mean_loss(std::span<const GradientStep> steps, std::size_t first, std::size_t count);
// Tokens before the middle of the first `window` steps whose mean loss is not above `loss`. Nothing if that never
// happens, or holds from the beginning.
std::optional<double> tokens_to_mean_loss(std::span<const GradientStep> steps, std::size_t window, double loss);
// The same from the dynamics, which continue with the last batch for up to ten times as many steps.
std::optional<double> predicted_tokens_to(const LossDynamics& dynamics, std::span<const double> batch_tokens,
                                          double loss);

}  // namespace slipway::models
