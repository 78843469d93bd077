// The operators of the embedding: the rows of its tables. Guarded by tests/exec/execute_numerics_test.cpp.
#pragma once

#include "exec/operators/operator_context.h"

namespace slipway::exec {

void run_embed(OperatorContext&);
void run_add_positions(OperatorContext&);

}  // namespace slipway::exec
