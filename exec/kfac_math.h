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

// sum [n, n] += Σ rowᵀ·row over all rows of x [..., n], times scale², in the sum's dtype. Takes memory
// where x has another one or is scaled: as much as x there.
void add_squares(at::Tensor& sum, const at::Tensor& x, double scale);

// π of the two factors, a scalar on their device: nobody waits for its value.
at::Tensor damping_ratio(const at::Tensor& a, const at::Tensor& b);

// factor ← (factor + damping·I)⁻¹ by Cholesky, symmetric; no numbers that mean anything where it fails.
// `factor`: contiguous; `damping`: a scalar tensor. Returns an int32 scalar on the factor's device: 0, or
// the leading minor that is not positive. Takes no memory beside the factor's own on the processor, as much
// again on a GPU (schedules/graph/kfac_shares.h).
at::Tensor invert_damped(at::Tensor& factor, const at::Tensor& damping);

// G ← B⁻¹·G·A⁻¹, in the inverses' dtype, of which it takes one matrix as large as G, two where G has
// another.
void precondition_gradient(at::Tensor& gradient, const at::Tensor& inverse_a, const at::Tensor& inverse_b);

}  // namespace slipway
