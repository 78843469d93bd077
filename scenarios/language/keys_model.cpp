// Keys of `model`: a part of the scenario's table.
#include "scenarios/embedded_files.h"
#include "scenarios/language/keys.h"

namespace slipway {
namespace {

using Names = std::vector<std::string_view>;

Names families() { return {"llama", "gpt", "bert"}; }

Names models() {
  Names names;
  for (const EmbeddedFile& file : embedded_models()) names.push_back(file.name);
  return names;
}

constexpr std::string_view own = "the model's own";

using enum KeyType;

// clang-format off
const Key table[] = {
    {.path = "model", .type = section,
     .meaning = "what is trained: a built-in model, a config.json, or shapes",
     .required = true, .shorthand = "name"},
    {.path = "model.name", .type = choice, .meaning = "a built-in model",
     .derived = "or give config or family",
     .choices = models},
    {.path = "model.config", .type = text,
     .meaning = "path of a Hugging Face config.json (llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, phi3, gpt2, bert), relative to the scenario",
     .derived = "or give name or family", .names_file = true},
    {.path = "model.family", .type = choice,
     .meaning = "block structure when neither name nor config is given",
     .derived = "or give name or config", .choices = families},
    {.path = "model.sequence", .type = integer, .meaning = "tokens per sequence", .derived = own,
     .min = 1, .max = 1e8},
    {.path = "model.layers", .type = integer, .meaning = "transformer blocks", .derived = own, .min = 1,
     .max = 1e4},
    {.path = "model.hidden", .type = integer, .meaning = "width of the residual stream", .derived = own,
     .min = 1, .max = 1e7},
    {.path = "model.ffn", .type = integer, .meaning = "width of the MLP; of one expert where there are experts", .derived = own, .min = 1,
     .max = 1e8},
    {.path = "model.experts", .type = integer,
     .meaning = "experts in place of each MLP (llama; Mixtral and Qwen3-MoE have them); 0: a plain MLP", .derived = own, .min = 0, .max = 1e5},
    {.path = "model.experts_per_token", .type = integer,
     .meaning = "experts that a token goes through (llama)", .derived = own, .min = 1, .max = 1e5},
    {.path = "model.heads", .type = integer, .meaning = "attention heads", .derived = own, .min = 1,
     .max = 1e6},
    {.path = "model.kv_heads", .type = integer, .meaning = "key and value heads (llama)", .derived = own,
     .min = 1, .max = 1e6},
    {.path = "model.head_dim", .type = integer, .meaning = "width of one head (llama)",
     .derived = "hidden / heads",
     .min = 1, .max = 1e6},
    {.path = "model.vocab", .type = integer, .meaning = "vocabulary, padded", .derived = own, .min = 1,
     .max = 1e8},
    {.path = "model.max_positions", .type = integer,
     .meaning = "rows of the learned position table (gpt, bert)",
     .derived = own, .min = 1, .max = 1e8},
    {.path = "model.token_types", .type = integer, .meaning = "rows of the token-type table (bert)",
     .derived = own,
     .min = 0, .max = 1e4},
    {.path = "model.tied", .type = flag, .meaning = "the head's matrix is the embedding's", .derived = own},
    {.path = "model.qkv_bias", .type = flag,
     .meaning = "biases of the query, key and value projections (llama; Qwen2 has them)", .derived = own},
    {.path = "model.qk_norm", .type = flag,
     .meaning = "an RMSNorm on each head's query and key, before the rotary turn (llama; Qwen3 has it)", .derived = own},
    {.path = "model.rope_theta", .type = number, .meaning = "base of the rotary angles (llama)",
     .derived = own,
     .max = unbounded, .above_min = true},
    {.path = "model.norm_epsilon", .type = number, .meaning = "added to the variance in norms",
     .derived = own,
     .max = 1, .above_min = true},
};
// clang-format on

}  // namespace

std::span<const Key> model_keys() { return table; }

}  // namespace slipway
