// K-FAC's formulas (Martens and Grosse 2015, in the form of Osawa et al. 2022, PipeFisher) on whole tensors. A Linear W
// (out × in) has inputs a and output gradients g, over the T tokens of a step:
//
//   A = 1/T Σ a·aᵀ             (in × in)
//   B = 1/T Σ (T·g)(T·g)ᵀ      (out × out)    g: of the mean loss, so that T·g is a token's own
//   π = √((tr A/in) / (tr B/out))             1 where one of the traces is 0
//   direction = (B + √γ/π·I)⁻¹ · G · (A + π√γ·I)⁻¹    G: the weight's gradient, γ: damping
//
// There is no moving average. Where only some tokens are predicted (BERT), the means count all tokens, and the T of T·g
// those whose losses the mean is over.
// Guarded by tests/exec/kfac_math_test.cpp: against the dense Fisher block of a small Linear.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/namespaces.h"

namespace slipway::exec {

// sum [n, n] += Σ rowᵀ·row over all rows of x [..., n], times scale², in the sum's dtype. It takes memory as large as x
// (in the sum's dtype) where x has another dtype or is scaled.
void add_squares(at::Tensor& sum, const at::Tensor& x, double scale);

// π of the two factors, a scalar on their device: no thread waits for its value.
at::Tensor damping_ratio(const at::Tensor& a, const at::Tensor& b);

// factor ← (factor + damping·I)⁻¹ by Cholesky, symmetric; its numbers are invalid where that fails. `factor`:
// contiguous; `damping`: a scalar tensor. Returns an int32 scalar on the factor's device: 0, or the leading minor that
// is not positive. On the processor it takes no memory beside the factor's own, on a GPU as much again
// (schedules/lower/kfac_shares.h).
at::Tensor invert_damped(at::Tensor& factor, const at::Tensor& damping);

// G ← B⁻¹·G·A⁻¹, in the inverses' dtype. It takes one matrix as large as G in that dtype, or two where G has another.
void precondition_gradient(at::Tensor& gradient, const at::Tensor& inverse_a, const at::Tensor& inverse_b);

}  // namespace slipway::exec
