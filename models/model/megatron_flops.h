// The FLOPs of a step as Megatron-LM counts them for its TFLOP/s per GPU, which most published throughputs are.
//
//   per token  6 × ( MLPs + attention + MTP's projections + h·V·(1 + MTP) )
//   MLP        h·f·m of a dense layer, h·(f·k + shared)·m of one with experts;  m = 3 with SwiGLU, else 2
//   attention  h·(2 q + 2 kv) + q·s,  the causal half of 2 q·s;  q, kv: widths of all heads
//   latent     q-lora·(h + a·(d + r) + 1) + kv-lora·(h + a·(d + v) + 1) + h·r + a·v·h + s·a·(d + r + v)/2
//
// Source: num_floating_point_operations in megatron/training/training.py of NVIDIA/Megatron-LM@001b00c (2026). Router,
// norms, and recomputation do not count. Until Megatron-Core 0.12 the whole q·s of both products counted
// (`causal_half` false). Model FLOPs of the field `mfu` are others (mfu_flops_per_token in model.h).
// Guarded by tests/models/megatron_flops_test.cpp.
#pragma once

#include <cstdint>

#include "models/model/model.h"

namespace slipway::models {

// The formula's inputs, by Megatron-LM's names. 0: not there.
struct MegatronCount {
  std::int64_t hidden_size = 0, seq_length = 0, padded_vocab_size = 0;
  std::int64_t dense_layers = 0, moe_layers = 0;  // with those of multi-token prediction
  std::int64_t ffn_hidden_size = 0;
  std::int64_t moe_ffn_hidden_size = 0, moe_router_topk = 0, moe_shared_expert_intermediate_size = 0;
  bool swiglu = false;
  std::int64_t num_attention_heads = 0, num_query_groups = 0, kv_channels = 0;
  bool multi_latent_attention = false;
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_head_dim = 0, qk_pos_emb_head_dim = 0, v_head_dim = 0;
  std::int64_t mtp_num_layers = 0;
  bool causal_half = true;
};

// FLOPs of a token, forward and backward.
double megatron_flops_per_token(const MegatronCount& count);
// The inputs of a model whose layers may differ only in having experts.
MegatronCount megatron_count(const Model& model);

}  // namespace slipway::models
