#include "models/model/megatron_flops.h"

namespace slipway::models {

namespace {

double number(std::int64_t count) { return static_cast<double>(count); }

// Multiply-adds of one token in the attention of one layer.
double plain_attention(const MegatronCount& c) {
  const double q = number(c.kv_channels * c.num_attention_heads), kv = number(c.kv_channels * c.num_query_groups);
  return number(c.hidden_size) * (2 * q + 2 * kv) + q * number(c.seq_length) * (c.causal_half ? 1 : 2);
}

double latent_attention(const MegatronCount& c) {
  const double h = number(c.hidden_size), a = number(c.num_attention_heads);
  const double d = number(c.qk_head_dim), r = number(c.qk_pos_emb_head_dim), v = number(c.v_head_dim);
  const double queries = c.q_lora_rank == 0 ? h * a * (d + r) : number(c.q_lora_rank) * (h + a * (d + r) + 1);
  const double keys_and_values = number(c.kv_lora_rank) * (h + a * (d + v) + 1) + h * r;
  const double core = number(c.seq_length) * a * (d + r + v) * (c.causal_half ? 0.5 : 1);
  return queries + keys_and_values + a * v * h + core;
}

}  // namespace

double megatron_flops_per_token(const MegatronCount& c) {
  const double h = number(c.hidden_size), matrices = c.swiglu ? 3 : 2;
  const double dense = number(c.dense_layers * c.ffn_hidden_size);
  const double experts =
      number(c.moe_layers * (c.moe_ffn_hidden_size * c.moe_router_topk + c.moe_shared_expert_intermediate_size));
  const double attention =
      (c.multi_latent_attention ? latent_attention(c) : plain_attention(c)) * number(c.dense_layers + c.moe_layers);
  const double prediction = number(c.mtp_num_layers) * (3 * h + 2 * h * h);
  const double logits = h * number(c.padded_vocab_size) * number(1 + c.mtp_num_layers);
  // 2 for a multiply-add; forward, and two products backward.
  return 6 * (h * matrices * (dense + experts) + attention + prediction + logits);
}

MegatronCount megatron_count(const Model& model) {
  MegatronCount c;
  c.seq_length = model.sequence;
  for (const BlockRun& run : model.runs) {
    const Block& block = run.block;
    if (block.kind == BlockKind::head) c.padded_vocab_size = block.vocab;
    if (block.kind == BlockKind::head) c.mtp_num_layers = block.predicted_tokens;
    if (block.kind != BlockKind::transformer && block.predicted_tokens == 0) continue;
    c.hidden_size = block.hidden;
    c.num_attention_heads = block.heads;
    c.num_query_groups = block.kv_heads;
    c.kv_channels = block.head_dim;
    c.swiglu = is_gated(block.mlp);
    if (is_latent(block)) {
      c.multi_latent_attention = true;
      c.q_lora_rank = block.q_latent, c.kv_lora_rank = block.kv_latent;
      c.qk_head_dim = block.head_dim - block.rope_head_dim;
      c.qk_pos_emb_head_dim = block.rope_head_dim, c.v_head_dim = value_dim(block);
    }
    if (block.experts == 0) {
      c.dense_layers += run.count;
      c.ffn_hidden_size = block.ffn;
    } else {
      c.moe_layers += run.count;
      c.moe_ffn_hidden_size = block.ffn;
      c.moe_router_topk = block.experts_per_token;
      c.moe_shared_expert_intermediate_size = block.shared_ffn;
    }
  }
  return c;
}

}  // namespace slipway::models
