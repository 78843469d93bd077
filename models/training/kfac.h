// The cost of K-FAC: curvature, inversion and preconditioning of the Linears of a Transformer block (Osawa et al. 2022,
// PipeFisher; Martens and Grosse 2015). A Linear W (out × in) has input a and output gradient g:
//
//   A = mean a·aᵀ (in × in), B = mean g·gᵀ (out × out)   curvature, per micro-batch    2·tokens·n² FLOPs
//   (A + εI)⁻¹, (B + ε'I)⁻¹ by Cholesky                  inversion, when refreshed     n³ FLOPs (n³/3 + 2n³/3)
//   B⁻¹ G A⁻¹                                            preconditioning, every step   2·out·in·(out + in)
//
// n = side of the factor. A machine with a block table (block_times.h) has these per block. Then a block's time is
// divided over its Linears by the same FLOPs: curvature by n², inversion by n³. Guarded by
// tests/models/kfac_cost_test.cpp: FLOP costs against the measured tables; parts sum to the block.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/machine.h"
#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

// A trainable matrix of a Transformer block with its own two factors. Biases have none: they are updated as vectors.
struct KfacLinear {
  const char* name;   // "q", "k", "v", "out", "up", "down"; "gate" of SwiGLU
  const char* input;  // the tensor that it reads; Linears of the same input share it in memory
  std::int64_t in = 0, out = 0;
  const char* parameter =
      "";  // the tensor that holds its rows, one below the other: end of a name in models/model/parameters.h
  std::int64_t first_row = 0;  // in that tensor
};
// In forward order. Empty for an embedding or a head: K-FAC is for Linears of Transformer blocks only.
std::vector<KfacLinear> kfac_linears(const Block& block);

// Seconds of one Linear.
struct KfacSeconds {
  double curvature_a = 0, curvature_b = 0;  // of one micro-batch
  double inversion_a = 0, inversion_b = 0;
  double precondition = 0;
};
// One entry per kfac_linears(block). Throws std::invalid_argument when the machine cannot price it.
std::vector<KfacSeconds> kfac_seconds(const Block& block, const WorkShape& shape, const Machine& machine);

// Dtype of factors and inverses of such weights: at least float32 (bfloat16 has too few digits for a Cholesky).
Dtype kfac_dtype(Dtype weights);

// Bytes of both factors of a Linear, and of all factors of a block. The inverses take as much again.
double kfac_factor_bytes(const KfacLinear& linear, Dtype weights);
double kfac_factor_bytes(const Block& block, Dtype weights);

// The replica that inverts each Linear's factors, its two together: the longest first (n³), each to the replica with
// the least so far. It depends on the Linears alone, so that all replicas divide them alike, whatever their machines.
std::vector<int> kfac_owners(const std::vector<KfacLinear>& linears, int replicas);

}  // namespace slipway::models
