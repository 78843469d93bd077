// y = x·Wₑᵀ for rows sorted by expert: rows [ends[e−1], ends[e]) of x go through the matrix of expert e.
//
//   x [rows, in]   W [E·out, in], the experts' matrices one below the other   ends [E], int32, on x's device
//
// As linear() (exec/linear.h): the weight is no input of the autograd graph, its gradient is handed to the queue. On a GPU
// in bfloat16, with widths that are multiples of 8, all experts are one kernel and the host never learns how many rows each got; elsewhere it is one product an
// expert, and on a GPU the host waits for `ends`. Guarded by tests/execute_experts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "exec/linear.h"

namespace slipway {

// `queue` must outlive the backward pass, the parameter both passes.
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& ends, const ShardedParameter& weight,
                          WeightGradientQueue& queue);

// sum [E, out, in] += dyₑᵀ·xₑ for each expert. `sum` may be wider than the rows.
void add_grouped_product(at::Tensor sum, const at::Tensor& output_gradient, const at::Tensor& input, const at::Tensor& ends);

}  // namespace slipway
