// The gradient noise scale of an executed run, by the norms that the norm test measured (models/training/batch_rules.h).
//
//   step       batch b, ‖ḡ‖² and Var of that mean         tr Σ ≈ b·Var        ‖G‖² ≈ ‖ḡ‖² − Var
//   group      steps that follow each other               B_i = Σ b·Var / Σ(‖ḡ‖² − Var)
//   groups     ln B_i = ln B − p·ln(L_i/L)                least squares; B(L) of models/training/growth.h
//
// Both sums are unbiased, so their ratio nearly is; the ratio of one step is not, and may be negative. L is the
// groups' mean of ln loss, where the errors of B and p are independent. Intervals: Student's t of the
// residuals; where neighbours are alike (correlation r) n groups count as n·(1 − r)/(1 + r).
// Guarded by tests/models/executed_run_test.cpp: of gradients drawn with a known noise it gives the noise back, and
// its intervals hold the truth as often as they say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/fit/loss_curves.h"

namespace slipway::models {

// One step of a run.
struct GradientStep {
  double batch_tokens = 0, loss = 0;
  double square = 0, variance = 0;  // ‖ḡ‖², Var
};

struct NoiseGroup {
  std::size_t first = 0, steps = 0;   // of the steps that were given
  double loss = 0, batch_tokens = 0;  // means
  double noise_tokens = 0;            // B_i
};

struct MeasuredNoise {
  std::vector<NoiseGroup> groups;
  double at_loss = 0, tokens = 0;                       // L, B
  double exponent = 0;                                  // p
  std::optional<Interval> interval, exponent_interval;  // 95 %; of an exponent that was given: none
  // The noise scale fell with the loss, which B(L) cannot say: p is 0.
  bool falls = false;
};

// Why measured_noise would refuse sound steps: fewer than twenty, or noise that drowns the gradient of a quarter of them.
// Empty where it would not.
std::string why_unmeasured(std::span<const GradientStep> steps);
// `exponent`: taken as given instead of fitted, ≥ 0. Throws std::invalid_argument for these reasons, and for a batch, a loss
// or a norm that no step has.
MeasuredNoise measured_noise(std::span<const GradientStep> steps, std::optional<double> exponent = {});

// B_i of all of them as one group; nothing where the noise drowns the gradient.
std::optional<double> noise_of_group(std::span<const GradientStep> steps);

// How the loss of one executed run falls, whose gradient noise was measured (measured_noise.h), and what that says of other
// runs.
//
//   S_k        = Σ_{i<k} 1/(1 + B(L_i)/b_i)        noiseless steps behind step k, by the measured losses and batches
//   L(S)         start, offset, exponent            fitted to the losses L_k, with wide priors (prior_fit.h)
//   prediction   S ← S + 1/(1 + B(L(S))/b)          step by step, by the fit alone: another run, or this one's end
//
// Curves of several constant batches tell the noise scale by the tokens that they need (loss_curves.h); here it is measured
// and only the law of the loss is fitted. Whether the gradient's noise is what slows a training down is what a run
// that the fit has not seen shows. Guarded by tests/models/executed_run_test.cpp.

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
std::optional<double> predicted_tokens_to(const LossDynamics& dynamics, std::span<const double> batch_tokens,
                                          double loss);

}  // namespace slipway::models
