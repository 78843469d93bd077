// The operators of models/model/operators.h with LibTorch: one function per kind, on this rank's shards.
//
// With slices of a sequence, attention reads the keys and values before its slice from a cache and adds its own. With
// context parallelism it reads them, gathered, from wire_kv, or runs in rounds (exec/rank/rank_ring.cpp).
// Wires are sequence-first, [s', b, features]. The same code runs under autograd inside a Region and under no_grad. The
// packed projections are cut inside each part: branch after `qkv` is [q | k | v] of this tensor rank's heads, after
// `up` [gate | up].
// Guarded by tests/exec/execute_numerics_test.cpp: every family against plain functional code, and every layout
// against one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "exec/operators/operator_context.h"
#include "models/model/token_ranges.h"

namespace slipway::exec {

// Reads op.reads and writes op.writes in `wires`. Throws std::runtime_error for `communicate`.
void run_operator(OperatorContext& context);

// The rows of `whole` in `ranges`; `whole` has one row per token of a sequence.
at::Tensor rows_in(const at::Tensor& whole, const std::vector<TokenRange>& ranges);

}  // namespace slipway::exec
