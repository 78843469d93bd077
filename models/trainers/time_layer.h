// Seconds of one Transformer layer and of the head, for one micro-batch, as trainers that run plain PyTorch
// kernels need them (AA-Scaling, nanotron).
//
//   forward = products + attention + scores in memory + element-wise kernels
//   backward the same: twice the products, 2.5 (flash) or 2 (unfused) times the attention, more bytes
//
// Bytes of element-wise kernels are counted kernel by kernel per token: residual adds 12 h, two fused norms
// 8 h forward and 12 h backward (unfused: 72 h and 152 h, a chain of nine and nineteen kernels with
// conversions to fp32), rotary 8 h, SwiGLU 10 f and 18 f. Constants scale these counts; 1 is the count
// itself. Private to models.
// Guarded by tests/models/trainer_time_test.cpp.
#pragma once

#include "models/trainers/time_formulas.h"

namespace slipway::models {

struct LayerConstants {
  double gemm_efficiency = 1, gemm_half = 0;  // share of peak; smallest side at which half of it is reached
  double flash1_efficiency = 1, flash2_efficiency = 1, score_efficiency = 1;  // share of peak
  double elementwise_traffic = 1, norm_traffic = 1, softmax_traffic = 1, fused_softmax_traffic = 1;
  double accumulate_bytes = 0;  // per parameter: gradient accumulation after each micro-batch
};

// Without the collectives of its groups, without gradient accumulation and without recomputation.
Passes layer_passes(const StepWork& work, const LayerConstants& constants);
// Gradient accumulation of this many parameters of a rank.
double accumulation_seconds(const StepWork& work, const LayerConstants& constants, double parameters);
// The vocabulary product, forward and backward, with its gradient accumulation.
double head_product_seconds(const StepWork& work, const LayerConstants& constants);

}  // namespace slipway::models
