// Memory of the most loaded GPU as Fujii et al. 2024 (arXiv 2411.06465) print it. It stands beside the count, and is a
// test's truth from outside the code. Nothing is judged by it.
//
//   first stage = 18 bytes × [L·layer/p + hV]/t  (+ hV/t + h if p = 1)          weights, gradients, Adam
//               + s·b·h·(12 + 4k/a + 8f/h)/(t·c) × L/p × p micro-batches in flight
//               + 8·(s/c)·b·h·p/t                                                embedding input
//               + 4·(s/c)·b·h·(1 + V/h)/t   if p = 1                             final norm, head, loss
//
// 18 = bf16 weight 2 + fp32 gradient 4 + Adam 12; the distributed optimizer (ZeRO-1) divides the 12 by d·c.
// Fewer micro-batches than stages: activations × m/p; interleaved with v chunks: × (1 + (p−1)/(p·v)). Without flash
// attention or selective recomputation: + 5·b·a·s²/t. Shapes: Llama (SwiGLU, RMSNorm, no bias, untied), sequence
// parallelism, 1F1B. Without sequence parallelism the formula is not printed; then what it shards is not divided by t.
// Guarded by tests/models/memory_test.cpp: the author's four cases, to the last digit.
#pragma once

#include "models/memory/memory_parts.h"
#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct MemoryInput {
  // The model: L, h, f, a, k, V (padded).
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, vocab = 0;
  WorkShape shape;                 // s, b, t, c, sequence parallel, kernels
  int pipeline = 1, data = 1;      // p, d
  int chunks = 1;                  // v
  std::int64_t micro_batches = 0;  // m per pipeline and step; 0: at least p
  int zero = 1;                    // 0: no distributed optimizer; 2: gradients divided too; 3: weights too
  Dtype gradient_dtype = Dtype::float32;
};

struct MemoryTerms {
  double parameters = 0;  // on the most loaded shard
  // bytes
  double weights = 0, gradients = 0, optimizer = 0;
  double layer_activations = 0, embedding_input = 0, head_and_loss = 0;
};
double static_bytes(const MemoryTerms& terms);  // weights + gradients + optimizer
double activation_bytes(const MemoryTerms& terms);
double total_bytes(const MemoryTerms& terms);

// The shapes of a model that the formula describes, in 16-bit training. Throws std::invalid_argument for others.
MemoryInput memory_input(const Model& model, const WorkShape& shape);
// Bytes that one layer keeps for one micro-batch.
double layer_activation_bytes(const MemoryInput& input);
// Throws std::invalid_argument for degrees below 1.
MemoryTerms closed_form_memory(const MemoryInput& input);

// The author's verdict: a run fits if the total is at most 80 % of the GPU's memory.
constexpr double safe_share = 0.8;
bool fits(const MemoryTerms& terms, double gpu_memory_bytes);

}  // namespace slipway::models
