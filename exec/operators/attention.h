// The operators of attention: projections before and behind it, and attention itself without rounds.
// Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_qkv(OperatorContext&);
void run_attention(OperatorContext&);
void run_out_projection(OperatorContext&);

// [s, b, heads·size] → [b, heads, s, size], and back.
at::Tensor by_head(const at::Tensor& x, std::int64_t size);
at::Tensor from_heads(const at::Tensor& x);

}  // namespace slipway::exec
