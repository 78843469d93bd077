// The operators of a mixture of experts: the router, the experts' products, the sum of their results. experts.h has the
// order of the rows. Guarded by tests/exec/execute_experts_test.cpp.
#pragma once

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_share(OperatorContext&);
void run_route(OperatorContext&);
void run_experts_up(OperatorContext&);
void run_experts_down(OperatorContext&);
void run_combine(OperatorContext&);

}  // namespace slipway::exec
