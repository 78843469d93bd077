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

#include <string>
#include <vector>

#include "exec/files/data.h"
#include "exec/operators/experts.h"
#include "exec/operators/parameters.h"
#include "exec/operators/region.h"
#include "exec/operators/rotary.h"
#include "models/model/model.h"
#include "models/model/operators.h"
#include "models/model/token_ranges.h"

namespace slipway::exec {

// Keys and values of the tokens before a slice of a sequence, layer by layer as a segment runs them, and those of all
// tokens up to its end. Each is [tokens, b, 2·heads·d]: keys (with rotary positions), then values.
struct KeyValueCache {
  at::Tensor past;  // [layers of the segment, tokens, b, 2·heads·d]; undefined for the first slice
  std::vector<at::Tensor> whole;
};

struct OperatorContext {
  const Operator& op;
  const Block& block;
  const BlockParameters& parameters;
  Region& region;
  WireTensors& wires;
  const TokenBatch& batch;                // embed, logits, loss
  const std::vector<TokenRange>& tokens;  // of the sequence: a slice's, or those of this context rank
  RotaryTables& rotary;
  ExpertRows& rows;  // from `route` to the `combine` of the same block, whose segments may be others
  int tensor_rank = 0, tensor_degree = 1;
  bool sequence_parallel = false;
  double loss_tokens = 1;          // predicted tokens of the whole step, over all ranks
  KeyValueCache* cache = nullptr;  // null: no slices
  int context_degree = 1;
  Routing routing = {};
  std::int64_t balanced_parts = 1;  // of a micro-batch, each balanced by itself
  double balancing_factor =
      0;  // α·E / (T²·M) of this block (experts.h), by the tensor ranks that route the same tokens
};

// Reads op.reads and writes op.writes in `wires`. Throws std::runtime_error for `communicate`.
void run_operator(OperatorContext& context);

// Implementations, by file.
void run_embed(OperatorContext&);  // embedding.cpp
void run_add_positions(OperatorContext&);
void run_norm(OperatorContext&);  // norm.cpp
void run_add(OperatorContext&);
void run_qkv(OperatorContext&);  // attention.cpp
void run_attention(OperatorContext&);
void run_out_projection(OperatorContext&);
void run_up(OperatorContext&);  // mlp.cpp
void run_activation(OperatorContext&);
void run_down(OperatorContext&);
void run_share(OperatorContext&);  // experts.cpp
void run_route(OperatorContext&);
void run_experts_up(OperatorContext&);
void run_experts_down(OperatorContext&);
void run_combine(OperatorContext&);
void run_head_transform(OperatorContext&);  // head.cpp
void run_logits(OperatorContext&);
void run_loss(OperatorContext&);

// The rows of `whole` in `ranges`; `whole` has one row per token of a sequence.
at::Tensor rows_in(const at::Tensor& whole, const std::vector<TokenRange>& ranges);

// [s, b, heads·size] → [b, heads, s, size], and back.
at::Tensor by_head(const at::Tensor& x, std::int64_t size);
at::Tensor from_heads(const at::Tensor& x);

// RMSNorm or LayerNorm with the parameters "<name>.weight" (and ".bias").
at::Tensor norm_with(OperatorContext& context, const std::string& name, const at::Tensor& x);

// Per token (maximum, sum of exponentials relative to it, target logit or 0) of this vocabulary shard, stacked to
// [3·tokens]; float32 at least. `first` is the shard's first token.
at::Tensor vocabulary_statistics(const at::Tensor& logits, const at::Tensor& targets, std::int64_t first);
// Σ counted token losses / loss_tokens, from local logits and the statistics of all shards [t·3·tokens].
at::Tensor vocabulary_loss(const at::Tensor& logits, const at::Tensor& statistics, const at::Tensor& targets,
                           const at::Tensor& counted, std::int64_t first, double loss_tokens);

}  // namespace slipway::exec
