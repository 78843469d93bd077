// The norm test: it asks for a batch whose gradient is mostly signal (Lau et al. 2024, arXiv 2412.21124, after Byrd et
// al. 2012).
//
//   worker j = 1..J holds g_j, the mean gradient of its share; ḡ = mean of g_j
//   Var  = Σ‖g_j − ḡ‖² / (J(J − 1)) = (Σ‖g_j‖² − J‖ḡ‖²) / (J(J − 1))        unbiased estimate of tr Σ / b
//   test:  Var ≤ η²‖ḡ‖²            else  b ← ⌈b · Var / (η²‖ḡ‖²)⌉, never smaller
//
// Two scalars per test cross the network. With the noise scale B = tr Σ/‖G‖² (McCandlish et al. 2018) the expectations
// are Var = ‖G‖²·B/b and ‖ḡ‖² = ‖G‖²·(1 + B/b). The measured norm contains noise too. So the test passes from
//
//   b ≥ B·(1/η² − 1)               on, not from B/η²; and one test grows a batch at most by 1/η².
//
// Guarded by tests/models/batch_rules_test.cpp: gradients drawn at random, the closed forms, degenerate input.
#pragma once

#include <cstdint>

#include "models/namespaces.h"

namespace slipway::models {

// Gradient norms that the workers of one step know.
struct GradientNorms {
  std::int64_t workers = 0;   // J
  double sum_of_squares = 0;  // Σ‖g_j‖²
  double square_of_mean = 0;  // ‖ḡ‖²
  bool operator==(const GradientNorms&) const = default;
};

// Throws std::invalid_argument for J < 2, which has no variance, and for norms that no gradients have: negative, not
// finite, or J‖ḡ‖² above Σ‖g_j‖² by more than rounding (1e-4 of it; below that the variance is 0).
double gradient_variance(const GradientNorms& norms);

// η > 0. A gradient that is zero on every worker passes: nothing shows that its batch is too small.
bool passes_norm_test(const GradientNorms& norms, double eta);

// Sequences that the test asks for: `batch` where it passes, infinity where ‖ḡ‖² is 0 and the variance is not. The
// caller caps it and rounds it up to an available batch (rung_of).
double batch_by_norm_test(std::int64_t batch, const GradientNorms& norms, double eta);

// Expected measurements for a batch in the noise scale's unit, with ‖G‖² = 1. All arguments above 0.
GradientNorms expected_norms(double batch, double noise_scale, std::int64_t workers);

// B·(1/η² − 1), where the test begins to pass; 0 for η ≥ 1.
double batch_content_with(double noise_scale, double eta);

}  // namespace slipway::models
