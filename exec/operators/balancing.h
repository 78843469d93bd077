// The loss that balances experts (models/model/routing.h), which adds to the gradient and not to the loss that is
// reported. Its derivative by the score p of a token for expert e is factor·(choices of e among the tokens that are
// balanced together), with
//
//   α·E·Σ f·P / M,   f = choices / (k·T),   P = Σ p / T     factor = α·E / (k·T²·M)
//
// T tokens that are balanced together, M such parts of the step. choices [parts of a micro-batch, E]: sequence i of
// `samples` belongs to part ⌊i·parts/samples⌋, and is that of the tokens i, samples + i, ... Returns `branch`.
// Guarded by tests/exec/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/namespaces.h"

namespace slipway::exec {

at::Tensor with_balancing_gradient(const at::Tensor& branch, const at::Tensor& scores, const at::Tensor& choices,
                                   std::int64_t samples, double factor);
// Choices [parts, E] by part of a micro-batch, of each token's experts [tokens, k] among E.
at::Tensor choices_by_part(const at::Tensor& expert, std::int64_t samples, std::int64_t parts, std::int64_t experts);

}  // namespace slipway::exec
