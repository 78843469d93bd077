// The trained model: a list of block runs.
//
//   embedding ×1 | transformer ×L | head ×1
//
// L layers need not be equal: a run is (block, count), and a model is any list of runs whose first block is an
// embedding and whose last is a head. Shapes are global (before any sharding).
// Guarded by tests/models/model_test.cpp (parameter counts of published models).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

// `mla` is a reserved name: loaders refuse it with one clear error. Experts are a feature of a transformer block.
enum class BlockKind : std::uint8_t { embedding, transformer, head };
enum class Norm : std::uint8_t { rms, layer };
enum class Mlp : std::uint8_t { swiglu, gelu };
enum class Positions : std::uint8_t { rotary, learned };
enum class Family : std::uint8_t { llama, gpt, bert };
// How a router's outputs become the weights of experts: softmax over all experts (Shazeer et al. 2017), or the sigmoid of
// each (DeepSeek-AI 2024, DeepSeek-V3, equation 15).
enum class RouterScores : std::uint8_t { softmax, sigmoid };

// The shapes and features of one block. Fields that a kind does not use are zero / default.
struct Block {
  BlockKind kind = BlockKind::transformer;
  std::int64_t hidden = 0;         // h
  std::int64_t ffn = 0;            // f; of each expert where there are experts
  std::int64_t heads = 0;          // a
  std::int64_t kv_heads = 0;       // k
  std::int64_t head_dim = 0;       // usually h / a
  std::int64_t vocab = 0;          // V, padded; embedding and head
  std::int64_t max_positions = 0;  // rows of the learned position table; embedding with Positions::learned
  std::int64_t token_types = 0;    // rows of BERT's token-type table; embedding
  // A mixture of experts in place of the MLP. A token goes through the `experts_per_token` experts with the largest
  // scores, weighted by them. Divided by their sum, softmax scores are the softmax over the chosen (Jiang et al. 2024,
  // Mixtral, section 2.1). 0: a plain MLP.
  std::int64_t experts = 0, experts_per_token = 0;
  std::int64_t shared_ffn = 0;  // width of the experts that every token goes through, all together; 0: none
  RouterScores scores = RouterScores::softmax;
  bool normalises_scores = true;  // the chosen ones are divided by their sum
  double score_scale = 1;         // of the weights, after that
  // Experts lie in equally large groups, and a token's are in the `groups_per_token` best ones. The score of a group is
  // the sum of its two largest (DeepSeek-V3, section 2.1.2).
  std::int64_t expert_groups = 1, groups_per_token = 1;
  // A number for each expert, added to its score where experts are chosen and not where they are weighed. It moves
  // against the expert's load (DeepSeek-V3, section 2.1.2).
  bool router_bias = false;
  Norm norm = Norm::rms;
  Mlp mlp = Mlp::swiglu;
  Positions positions = Positions::rotary;
  bool causal = true;
  bool bias = false;
  bool qkv_bias = false;   // of the query, key and value projections alone (Qwen2)
  bool qk_norm = false;    // RMSNorm of each head's query and key, before the rotary turn (Qwen3)
  bool post_norm = false;  // BERT: norm after the residual add
  bool tied = false;       // head: weight is the embedding's
  double rope_theta = 10000.0;
  double norm_epsilon = 1e-5;
  bool operator==(const Block&) const = default;
};

struct BlockRun {
  Block block;
  std::int64_t count = 1;
  bool operator==(const BlockRun&) const = default;
};

struct Model {
  std::string name;
  Family family = Family::llama;
  std::vector<BlockRun> runs;
  std::int64_t sequence = 0;  // s, tokens per sequence
  bool operator==(const Model&) const = default;
};

// One entry per block: [embedding, layer 0, ..., layer L-1, head].
std::vector<Block> blocks_of(const Model& model);
// True if no token attends to a later one.
bool is_causal(const Model& model);
// Number of transformer blocks, L.
std::int64_t layer_count(const Model& model);
// Trainable parameters of one block; of the whole model, N (a tied head's matrix counts once).
std::int64_t parameter_count(const Block& block);
std::int64_t parameter_count(const Model& model);
// The N of the MFU formula (Hagemann 2023): both embeddings count even when tied; of experts, the router and those that
// a token goes through.
std::int64_t mfu_parameter_count(const Model& model);
// N without the experts that a token does not go through. A tied head's matrix counts once. Without experts it is N.
std::int64_t active_parameter_count(const Model& model);
bool has_experts(const Model& model);
// Model FLOPs of one token, 6N + 12·L·q·s: full attention, recompute not counted (Hagemann 2023). q is the width of all
// query heads: h in the paper and in most models, heads × head_dim in Chowdhery 2022.
double mfu_flops_per_token(const Model& model);

// The plain family shapes, for loaders of named models and of config.json.
struct LlamaShape {
  std::int64_t layers, hidden, ffn, heads, kv_heads, vocab, sequence;
  bool tied = false;
  double rope_theta = 10000.0, norm_epsilon = 1e-5;
  std::int64_t head_dim = 0;  // 0: hidden / heads
  bool qkv_bias = false, qk_norm = false;
  std::int64_t experts = 0, experts_per_token = 0, shared_ffn = 0;
};
struct GptShape {
  std::int64_t layers, hidden, ffn, heads, vocab, max_positions, sequence;
  bool tied = true;
  double norm_epsilon = 1e-5;
};
struct BertShape {
  std::int64_t layers, hidden, ffn, heads, vocab, max_positions, token_types, sequence;
  bool tied = true;
  double norm_epsilon = 1e-12;
};
Model llama(std::string name, const LlamaShape& shape);
Model gpt(std::string name, const GptShape& shape);
Model bert(std::string name, const BertShape& shape);

}  // namespace slipway::models
