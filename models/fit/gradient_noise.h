// The gradient noise scale of an executed run, from the norms that the norm test measured
// (models/training/norm_test.h).
//
//   step       batch b, ‖ḡ‖² and Var of that mean         tr Σ ≈ b·Var        ‖G‖² ≈ ‖ḡ‖² − Var
//   group      steps that follow each other               B_i = Σ b·Var / Σ(‖ḡ‖² − Var)
//   groups     ln B_i = ln B − p·ln(L_i/L)                least squares; B(L) of models/training/loss_dynamics.h
//
// Both sums are unbiased, so their ratio nearly is. The ratio of one step is not, and may be negative. L is the groups'
// mean of ln loss, where the errors of B and p are independent. Intervals use Student's t of the residuals. Where
// neighbours are alike (correlation r), n groups count as n·(1 − r)/(1 + r).
// Guarded by tests/models/executed_run_test.cpp: gradients drawn with a known noise give that noise back, and the
// intervals hold the truth as often as stated.
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
  std::size_t first = 0, steps = 0;   // range in the given steps
  double loss = 0, batch_tokens = 0;  // means
  double noise_tokens = 0;            // B_i
};

struct MeasuredNoise {
  std::vector<NoiseGroup> groups;
  double at_loss = 0, tokens = 0;                       // L, B
  double exponent = 0;                                  // p
  std::optional<Interval> interval, exponent_interval;  // 95 %; none for a given exponent
  // The noise scale fell with the loss, which B(L) cannot express: p is 0.
  bool falls = false;
};

// The reason why measured_noise would refuse sound steps: fewer than twenty, or noise that drowns the gradient of a
// quarter of them. Empty if it would not.
std::string why_unmeasured(std::span<const GradientStep> steps);
// `exponent`: given instead of fitted, ≥ 0. Throws std::invalid_argument for the reasons of why_unmeasured, and for an
// impossible batch, loss or norm.
MeasuredNoise measured_noise(std::span<const GradientStep> steps, std::optional<double> exponent = {});

// B_i of all steps as one group; nothing where the noise drowns the gradient.
std::optional<double> noise_of_group(std::span<const GradientStep> steps);

}  // namespace slipway::models
