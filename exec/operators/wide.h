// The type in which sums and scores are computed that bfloat16 would round away. Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include <ATen/ATen.h>

#include "models/namespaces.h"

namespace slipway::exec {

// float32, but float64 for a tensor of float64.
inline at::ScalarType at_least_float(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace slipway::exec
