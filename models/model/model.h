// The trained model: a list of block runs.
//
//   embedding ×1 | transformer ×L | head ×1
//
// L layers need not be equal: a run is (block, count), and a model is any list of runs whose first block is an
// embedding and whose last is a head. Shapes are global (before any sharding).
// Guarded by tests/models/model_test.cpp (parameter counts of published models).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/model/names.h"
#include "models/namespaces.h"

namespace slipway::models {

// Experts and latent attention are features of a transformer block.
enum class BlockKind : std::uint8_t { embedding, transformer, head };
enum class Norm : std::uint8_t { rms, layer };
inline constexpr std::array norm_names{Named{Norm::rms, "rms"}, Named{Norm::layer, "layer"}};
// Gated ones have a third matrix (Shazeer 2020); the last is that of Primer (So et al. 2021).
enum class Mlp : std::uint8_t { swiglu, gelu, geglu, relu, squared_relu };
inline constexpr std::array mlp_names{Named{Mlp::swiglu, "swiglu"}, Named{Mlp::gelu, "gelu"},
                                      Named{Mlp::geglu, "geglu"}, Named{Mlp::relu, "relu"},
                                      Named{Mlp::squared_relu, "squared-relu"}};
constexpr bool is_gated(Mlp mlp) { return mlp == Mlp::swiglu || mlp == Mlp::geglu; }
// `alibi` adds a slope times the distance to the scores (Press et al. 2022).
enum class Positions : std::uint8_t { rotary, learned, alibi, none };
inline constexpr std::array positions_names{Named{Positions::rotary, "rotary"}, Named{Positions::learned, "learned"},
                                            Named{Positions::alibi, "alibi"}, Named{Positions::none, "none"}};
// Where the norms of a sub-layer are: of its input (GPT-2, Llama), of its result before the residual add (OLMo 2), of
// both (Gemma 2). BERT's, after the add, is `post_norm`.
enum class NormPlace : std::uint8_t { input, result, both };
inline constexpr std::array norm_place_names{Named{NormPlace::input, "input"}, Named{NormPlace::result, "result"},
                                             Named{NormPlace::both, "both"}};
// Attention and MLP one after the other, or side by side on the same residual: with one norm for both (GPT-J, Falcon
// 7B) or one for each (GPT-NeoX, Falcon 40B).
enum class Parallel : std::uint8_t { none, one_norm, two_norms };
inline constexpr std::array parallel_names{Named{Parallel::none, "none"}, Named{Parallel::one_norm, "one-norm"},
                                           Named{Parallel::two_norms, "two-norms"}};
// The range of a norm of queries and keys: each head with the same weights (Qwen3), all heads at once (OLMo 2), each
// head without weights (Llama 4).
enum class QkNorm : std::uint8_t { head, all, unweighted };
inline constexpr std::array qk_norm_names{Named{QkNorm::head, "head"}, Named{QkNorm::all, "all"},
                                          Named{QkNorm::unweighted, "unweighted"}};
enum class Family : std::uint8_t { llama, gpt, bert };
// The function from a router's outputs to the weights of experts: softmax over all experts (Shazeer et al. 2017), or
// the sigmoid of each (DeepSeek-AI 2024, DeepSeek-V3, equation 15).
enum class RouterScores : std::uint8_t { softmax, sigmoid };
inline constexpr std::array router_scores_names{Named{RouterScores::softmax, "softmax"},
                                                Named{RouterScores::sigmoid, "sigmoid"}};

// The shapes and features of one block. Fields that a kind does not use are zero / default.
struct Block {
  BlockKind kind = BlockKind::transformer;
  std::int64_t hidden = 0;         // h
  std::int64_t ffn = 0;            // f; of each expert where there are experts
  std::int64_t heads = 0;          // a
  std::int64_t kv_heads = 0;       // k
  std::int64_t head_dim = 0;       // of queries and keys, usually h / a
  std::int64_t v_head_dim = 0;     // of values and of attention's result; 0: head_dim
  std::int64_t rope_head_dim = 0;  // numbers of a head that are turned by rotary positions; 0: all
  // Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1), where kv_latent > 0. Keys and values are
  // projected from a latent of that width. The turned numbers of a key, rope_head_dim, are one for all heads. Queries
  // come from a latent too, or, with q_latent = 0, from the input.
  std::int64_t kv_latent = 0, q_latent = 0;
  // A token attends to the last `window` tokens, itself included; 0: to all. With `window_chunks` the sequence is cut
  // into chunks of that length instead, and a token attends to those of its chunk (Llama 4).
  std::int64_t window = 0;
  bool window_chunks = false;
  bool sinks = false;              // a learned logit for each head in attention's softmax (gpt-oss)
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
  bool bias = false;      // of all Linears; of a head's own
  bool qkv_bias = false;  // of the query, key and value projections (Qwen2)
  bool out_bias = false;  // of attention's output projection
  bool mlp_bias = false;  // of the MLP's or the experts' Linears, and of their router
  bool qk_norm = false;   // RMSNorm of queries and keys, before the rotary turn (Qwen3)
  QkNorm qk_norm_over = QkNorm::head;
  NormPlace norms = NormPlace::input;
  Parallel parallel = Parallel::none;
  bool embedding_norm = false;  // embedding: a norm behind it (BLOOM)
  // Head: multi-token prediction (DeepSeek-V3, section 2.2). Beside the next token, a module predicts one more: two
  // norms, a projection of 2h to h, a layer whose shapes are this block's, and embedding and head once more. The
  // embedding's matrix is a copy where it is on another rank.
  std::int64_t predicted_tokens = 0;
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
  // Fields of its config.json that change numbers, not a step's time or memory, and that the executor does not compute.
  std::vector<std::string> only_predicted;
  bool operator==(const Model&) const = default;
};

// Width of a head's values.
constexpr std::int64_t value_dim(const Block& block) {
  return block.v_head_dim > 0 ? block.v_head_dim : block.head_dim;
}
constexpr bool is_latent(const Block& block) { return block.kv_latent > 0; }
constexpr bool has_qkv_bias(const Block& block) { return block.bias || block.qkv_bias; }
constexpr bool has_out_bias(const Block& block) { return block.bias || block.out_bias; }
constexpr bool has_mlp_bias(const Block& block) { return block.bias || block.mlp_bias; }
// True if the head reads the embedding's matrix: as its own (tied), or for multi-token prediction.
constexpr bool reads_table(const Block& head) { return head.tied || head.predicted_tokens > 0; }

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
// Tensor ranks that have the same key-value head: with more ranks than heads, each rank has a whole head, a copy of that
// of its neighbours (GQAQKVColumnParallelLinear of AWS's neuronx-distributed; vLLM). 1: no copies.
int kv_copies(const Block& block, int tensor);
// Key-value heads on a tensor rank, copies included.
std::int64_t kv_heads_of_rank(const Block& block, int tensor);
// Every number of copies above 1 in the model, ascending: one, unless layers have unlike key-value heads.
std::vector<int> kv_copies(const Model& model, int tensor);
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
// A model of equal or unequal layers. `features` has the fields that all blocks share, vocabulary, `tied` and
// predicted_tokens included; of `layers`, equal neighbours become one run. The prediction module's layer is the last.
Model decoder(std::string name, Family family, std::int64_t sequence, const Block& features,
              const std::vector<Block>& layers);
Model gpt(std::string name, const GptShape& shape);
Model bert(std::string name, const BertShape& shape);

}  // namespace slipway::models
