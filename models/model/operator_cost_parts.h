// What the costs of several operators have in common: products, casts and norms. Private to operator_cost*.cpp, whose
// header has the letters. Guarded by tests/models/operators_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/model/operator_cost.h"

namespace slipway::models {

inline double real(std::int64_t value) { return static_cast<double>(value); }

inline double element(const CostInput& in) { return bytes_of(in.shape.dtype); }   // B
inline double summed(const CostInput& in) { return std::max(4.0, element(in)); }  // F
// Traffic of a conversion between the dtype and fp32, either way; none when they are the same.
inline double conversion(const CostInput& in) { return element(in) < summed(in) ? element(in) + summed(in) : 0.0; }
inline double residual_elements(const CostInput& in) { return real(in.tokens.sharded * in.block.hidden); }

void set_gemm(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k);

// Traffic of casting one number of an input or a gradient: it is read, and written by rows and by columns.
double cast_bytes(const CostInput& in);

// A Linear of a layer, in the narrow format where the trainer has one. The input is cast forward and the output's
// gradient backward, each by rows and by columns in one kernel; the weight gradient's operands are cast then. Results
// are in the dtype. Weights are cast here where that is done in every pass; once a step: durations.cpp.
void set_linear(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k,
                std::int64_t matrices = 1);

// The input of a column-parallel projection: its transpose is made in the backward pass.
void cast_input_shard(Operator& op, const CostInput& in);
// The gradient of a row-parallel projection's result.
void cast_gradient_shard(Operator& op, const CostInput& in);

// Column-parallel projections keep their input as sequence parallelism shards it, and gather it again in the backward
// pass (Korthikanti 2022, the form of Fujii's formula).
void keep_sharded_input(Operator& op, const CostInput& in);

struct NormCost {
  double forward_bytes, backward_bytes, saved_bytes;  // per normed number
  int kernels;
};

// Fused: x read, y written; backward x and dy read, dx written. Keeps x (the statistics, 2 numbers a token, are left
// out). Unfused RMSNorm, forward: x→fp32; x² (2F); mean (F); x·rstd (2F); →dtype; ·weight (2B).
//   Backward: dy·weight (2B), weight gradient dy·x̂ (3B, and B to sum it); →fp32; ·rstd (2F); dot with x
//   (3F, and F to sum it); the square's gradient 2x·dvar (2F, 2F); sum of both paths (3F); →dtype.
//   Keeps x in fp32 and x̂ in the dtype. In bf16 that makes 36 + 76 bytes a number instead of 4 + 6, or 224 instead of
//   20 for a layer. A fit to the rows of Hagemann 2023 gives 274.
NormCost norm_cost(const CostInput& in);

}  // namespace slipway::models
