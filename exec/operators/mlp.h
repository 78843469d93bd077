// The operators of a dense MLP, and of the experts that all tokens share. Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_up(OperatorContext&);
void run_activation(OperatorContext&);
void run_down(OperatorContext&);

}  // namespace slipway::exec
