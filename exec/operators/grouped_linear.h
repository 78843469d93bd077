// y = x·Wₑᵀ for rows sorted by expert: rows [ends[e−1], ends[e]) of x go through the matrix of expert e.
//
//   x [rows, in]   W [E·out, in], the experts' matrices one below the other   ends [E], int32, on x's device
//
// Like linear() (exec/operators/linear.h): the weight is no input of the autograd graph, its gradient goes to the
// queue. On a GPU in bfloat16, with widths that are multiples of 8, all experts are one kernel and the host never reads
// `ends`. Elsewhere each expert is a product, and a GPU's host waits for `ends`.
// Guarded by tests/exec/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "exec/operators/linear.h"

namespace slipway::exec {

// `queue` must outlive the backward pass, the parameter both passes.
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& ends, const ShardedParameter& weight,
                          WeightGradientQueue& queue);

// sum [E, out, in] += dyₑᵀ·xₑ for each expert. `sum` may be wider than the rows.
void add_grouped_product(at::Tensor sum, const at::Tensor& output_gradient, const at::Tensor& input,
                         const at::Tensor& ends);

}  // namespace slipway::exec
