// Memory of the most loaded GPU in closed form, before any graph exists: Fujii et al. 2024 (arXiv
// 2411.06465), equal to the last digit on the author's four cases, with the terms that other settings need
// beside it.
//
//   first stage = 18 bytes × [L·layer/p + hV]/t  (+ hV/t + h if p = 1)          weights, gradients, Adam
//               + s·b·h·(12 + 4k/a + 8f/h)/(t·c) × L/p × p micro-batches in flight
//               + 8·(s/c)·b·h·p/t                                                embedding input
//               + 4·(s/c)·b·h·(1 + V/h)/t   if p = 1                             final norm, head, loss
//
// 18 = bf16 weight 2 + fp32 gradient 4 + Adam 12; the distributed optimizer (ZeRO-1) divides the 12 by d·c.
// Fewer micro-batches than stages: activations × m/p; interleaved with v chunks: × (1 + (p−1)/(p·v)).
// Heads of a width of their own, q = a·d in place of h: 2hq(1 + k/a) in a layer and (8 + 4·(1 + k/a)·q/h + 8f/h); norms
// of them: 2d in a layer, and their inputs (2·(1 + k/a)·q/h). A mixture of experts: 3hf in a layer becomes E·3hf/t +
// E·h (the router, whole on every rank); a token keeps 8f of each of its k experts, the expert's input and result (4h),
// its weight (6) and three indices (24). Shapes: Llama (SwiGLU, RMSNorm, no bias), pipeline order 1F1B. The author's
// models are untied. The embedding-input term is the author's; a timeline made from buffers has no such thing. Guarded
// by tests/models/memory_test.cpp.
#pragma once

#include <span>

#include "models/memory/memory_parts.h"
#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct MemoryInput {
  // The model: L, h, f, a, k, V (padded).
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, vocab = 0;
  std::int64_t head_dim = 0;  // d; 0: h/a
  bool qkv_bias = false;      // q(1 + 2k/a) parameters a layer more
  bool qk_norm = false;
  std::int64_t experts = 0, experts_per_token = 0;  // E, k; 0: a plain MLP
  WorkShape shape;                                  // s, b, t, c, sequence parallel, kernels, dtype
  int pipeline = 1, data = 1;                       // p, d
  int chunks = 1;                                   // v
  std::int64_t micro_batches = 0;                   // m per pipeline and step; 0: at least p
  double layers_on_first_stage = 0;                 // 0: L/p
  int zero = 1;  // 0: no distributed optimizer; 2: gradients divided too; 3: weights too
  Dtype gradient_dtype = Dtype::float32;
  Recompute recompute = Recompute::none;
  bool tied = false;  // head's matrix = embedding's: counted once where both are on one stage
};

struct MemoryTerms {
  double parameters = 0;  // on the most loaded shard
  // bytes
  double weights = 0, gradients = 0, optimizer = 0;
  double layer_activations = 0, embedding_input = 0, head_and_loss = 0;
  // Factor that is already part of layer_activations and embedding_input: m/p and interleaving.
  double in_flight_factor = 1;
};
double static_bytes(const MemoryTerms& terms);  // weights + gradients + optimizer
double activation_bytes(const MemoryTerms& terms);
double total_bytes(const MemoryTerms& terms);

// The shapes of a model in which all layers are alike and Llama's; throws std::invalid_argument otherwise,
// because the formula does not cover others.
MemoryInput memory_input(const Model& model, const WorkShape& shape);

// Bytes that one layer keeps for one micro-batch. Beyond the author's case: without sequence parallelism
// the inputs of norms and of column-parallel projections, 8 of the 12, are not divided by t (Korthikanti
// 2022); unfused attention adds 5·b·a·s²/(t·c) unless selectively recomputed; RMSNorm without its own
// kernel keeps fp32 copies, 4·s·b·h more for each of the two; full recompute keeps the layer's input only.
double layer_activation_bytes(const MemoryInput& input);

// Throws std::invalid_argument for degrees below 1.
MemoryTerms closed_form_memory(const MemoryInput& input);

// The author's verdict: a run fits if the total is at most 80 % of the GPU's memory.
constexpr double safe_share = 0.8;
bool fits(const MemoryTerms& terms, double gpu_memory_bytes);

// One share of a pipeline rank in the same closed form, for any rank: a chunk of layers, with embedding or
// head, and the micro-batches (slices) whose activations it holds when the rank is fullest. 1F1B: p − i on
// rank i; for any order schedules/memory/in_flight.h counts them.
struct StageShare {
  double layers = 0;
  bool embedding = false, head = false;
  double in_flight = 1;
};
// By part; throws as closed_form_memory. The first rank's parts sum to closed_form_memory's total, except
// that interleaving multiplies the author's embedding input by its mean over chunks, and for what the executor keeps
// and a trainer does not: what comes with keys and values gathered over a context group ((4·(c−1)·k/a +
// 2)·s·b·q/(t·c)), and the gathered inputs of a layer's projections while that is made again.
MemoryParts stage_memory(const MemoryInput& input, std::span<const StageShare> shares);
// As a trainer keeps it, and under full recompute with the head's moment and a layer's added up (memory_estimate.h).
MemoryParts stage_memory_together(const MemoryInput& input, std::span<const StageShare> shares);
// Parameters of the rank's shard, with all its shares.
double shard_parameters(const MemoryInput& input, std::span<const StageShare> shares);

}  // namespace slipway::models
