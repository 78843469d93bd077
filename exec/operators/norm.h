// Norms, and the sum of the residual and a branch. Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_norm(OperatorContext&);
void run_add(OperatorContext&);

// RMSNorm or LayerNorm with the parameters "<name>.weight" (and ".bias").
at::Tensor norm_with(OperatorContext& context, const std::string& name, const at::Tensor& x);

}  // namespace slipway::exec
