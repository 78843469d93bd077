// The gradient noise scale of an executed run, by the norms that the norm test measured (models/norm_test.h).
//
//   step       batch b, ‖ḡ‖² and Var of that mean         tr Σ ≈ b·Var        ‖G‖² ≈ ‖ḡ‖² − Var
//   group      steps that follow each other               B_i = Σ b·Var / Σ(‖ḡ‖² − Var)
//   groups     ln B_i = ln B − p·ln(L_i/L)                least squares; B(L) of models/loss_dynamics.h
//
// Both sums are unbiased, so their ratio nearly is; the ratio of one step is not, and may be negative. L is the
// groups' mean of ln loss, where the errors of B and p are independent. Intervals: Student's t of the
// residuals; where neighbours are alike (correlation r) n groups count as n·(1 − r)/(1 + r).
// Guarded by tests/measured_noise_test.cpp: of gradients drawn with a known noise it gives the noise back, and
// its intervals hold the truth as often as they say.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/fit/loss_curves.h"

namespace slipway {

// One step of a run.
struct GradientStep {
  double batch_tokens = 0, loss = 0;
  double square = 0, variance = 0;  // ‖ḡ‖², Var
};

struct NoiseGroup {
  std::size_t first = 0, steps = 0;  // of the steps that were given
  double loss = 0, batch_tokens = 0;  // means
  double noise_tokens = 0;            // B_i
};

struct MeasuredNoise {
  std::vector<NoiseGroup> groups;
  double at_loss = 0, tokens = 0;  // L, B
  double exponent = 0;             // p
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

}  // namespace slipway
