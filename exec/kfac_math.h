// K-FAC's formulas (Martens and Grosse 2015; as Osawa et al. 2022, PipeFisher, use them) on whole tensors.
// Of a Linear W (out × in) with inputs a and output gradients g, of T tokens in a step:
//
//   A = 1/T Σ a·aᵀ             (in × in)
//   B = 1/T Σ (T·g)(T·g)ᵀ      (out × out)    g: of the mean loss, so that T·g is a token's own
//   π = √((tr A/in) / (tr B/out))             1 where one of the traces is 0
//   direction = (B + √γ/π·I)⁻¹ · G · (A + π√γ·I)⁻¹    G: the weight's gradient, γ: damping
//
// No moving average. Where only some tokens are predicted (BERT), the means count all of them, and the T of
// T·g those whose losses the mean is over.
// Guarded by tests/kfac_math_test.cpp: against the dense Fisher block of a small Linear.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace slipway {

// Σ rowᵀ·row over all rows of x [..., n], times scale², [n, n] in `dtype`.
at::Tensor sum_of_squares(const at::Tensor& x, double scale, at::ScalarType dtype);

// π of the two factors, a scalar on their device: nobody waits for its value.
at::Tensor damping_ratio(const at::Tensor& a, const at::Tensor& b);

struct Inverse {
  at::Tensor inverse;  // symmetric; undefined values where `failed`
  at::Tensor failed;   // int32 scalar: 0, or the leading minor that is not positive, on the factor's device
};
// (factor + damping·I)⁻¹ by Cholesky. `damping`: a scalar tensor.
Inverse damped_inverse(const at::Tensor& factor, const at::Tensor& damping);

// B⁻¹·G·A⁻¹ in the inverses' dtype.
at::Tensor natural_direction(const at::Tensor& gradient, const at::Tensor& inverse_a,
                             const at::Tensor& inverse_b);

}  // namespace slipway
