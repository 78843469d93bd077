// Keys of `model`: a part of the scenario's table.
#include "scenarios/language/keys.h"

#include <span>
#include <string_view>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/binding.h"
#include "scenarios/language/keys_fields.h"

namespace slipway::scenarios {

namespace {

Names families() { return {"llama", "gpt", "bert"}; }

Names models() {
  Names names;
  for (const EmbeddedFile& file : embedded_models()) names.push_back(file.name);
  return names;
}

constexpr std::string_view own = "the model's own";

using enum KeyType;

// clang-format off
const Key model_table[] = {
    {.path = "model", .type = section,
     .meaning = "what is trained: a built-in model, a config.json, or shapes",
     .required = true, .shorthand = "name"},
    {.path = "model.name", .type = choice, .meaning = "a built-in model",
     .derived = "or give config or family",
     .choices = models},
    {.path = "model.config", .type = text,
     .meaning = "path of a Hugging Face config.json (`slipway list models` has the families), relative to the scenario",
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
    {.path = "model.shared_ffn", .type = integer,
     .meaning = "width of the experts that every token goes through, all together (llama); 0: none", .derived = own,
     .min = 0, .max = 1e9},
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
     .meaning = "rows of the learned position table (gpt, bert; llama with positions learned)",
     .derived = own, .min = 1, .max = 1e8},
    {.path = "model.token_types", .type = integer, .meaning = "rows of the token-type table (bert)",
     .derived = own,
     .min = 0, .max = 1e4},
    {.path = "model.tied", .type = flag, .meaning = "the head's matrix is the embedding's", .derived = own},
    {.path = "model.qkv_bias", .type = flag,
     .meaning = "biases of the query, key and value projections (llama; Qwen2 has them)", .derived = own},
    {.path = "model.qk_norm", .type = flag,
     .meaning = "an RMSNorm on each head's query and key, before the rotary turn (llama; Qwen3 has it)", .derived = own},
    {.path = "model.qk_norm_over", .type = choice,
     .meaning = "what these norms go over: each head, all heads at once (OLMo 2), or each head and without weights (Llama 4) (llama)",
     .derived = own, .choices = words_of<qk_norm_names>},
    {.path = "model.rope_head_dim", .type = integer,
     .meaning = "numbers of a head that rotary positions turn (llama); 0: all", .derived = own, .min = 0, .max = 1e6},
    {.path = "model.kv_latent", .type = integer,
     .meaning = "multi-head latent attention: width of the latent of keys and values (llama; DeepSeek-V3: 512); 0: none",
     .derived = own, .min = 0, .max = 1e6},
    {.path = "model.q_latent", .type = integer,
     .meaning = "latent attention: width of the queries' latent; 0: they come from the input", .derived = own, .min = 0, .max = 1e6},
    {.path = "model.qk_head_dim", .type = integer,
     .meaning = "latent attention: numbers of a query's or key's head without positions; rope_head_dim more have them",
     .derived = own, .min = 1, .max = 1e6},
    {.path = "model.v_head_dim", .type = integer, .meaning = "width of one head's values (llama)",
     .derived = "head_dim; with latent attention qk_head_dim", .min = 1, .max = 1e6},
    {.path = "model.window", .type = integer,
     .meaning = "sliding window: tokens that a token attends to, itself included (llama); 0: all before it", .derived = own,
     .min = 0, .max = 1e8},
    {.path = "model.window_chunks", .type = flag,
     .meaning = "the window does not slide: tokens attend within chunks of its length (llama; Llama 4)", .derived = own},
    {.path = "model.full_every", .type = integer,
     .meaning = "one of so many layers has no window, the last of them (llama; Gemma 2: 2, Gemma 3: 6); 0: none", .derived = own,
     .min = 0, .max = 1e4},
    {.path = "model.full_positions", .type = choice,
     .meaning = "positions of the layers without a window; with none, queries and keys have no norm there (llama; Llama 4: none)",
     .derived = "model.positions", .choices = words_of<positions_names>},
    {.path = "model.window_rope_theta", .type = number,
     .meaning = "base of the rotary angles in layers with a window (llama; Gemma 3: 10000)", .derived = "model.rope_theta",
     .max = unbounded, .above_min = true},
    {.path = "model.sinks", .type = flag, .meaning = "a learned logit a head in attention's softmax (llama; gpt-oss)", .derived = own},
    {.path = "model.dense_layers", .type = integer,
     .meaning = "with experts: the first so many layers have an MLP instead (llama; DeepSeek-V3: 3)", .derived = own, .min = 0,
     .max = 1e4},
    {.path = "model.dense_ffn", .type = integer, .meaning = "width of the MLP in layers without experts (llama)", .derived = "ffn",
     .min = 1, .max = 1e8},
    {.path = "model.experts_every", .type = integer,
     .meaning = "one of so many layers has experts, the last of them (llama; Llama 4 Maverick: 2)", .derived = own, .min = 1,
     .max = 1e4},
    {.path = "model.expert_groups", .type = integer, .meaning = "equally large groups of experts (llama; DeepSeek-V3: 8)",
     .derived = own, .min = 1, .max = 1e5},
    {.path = "model.groups_per_token", .type = integer,
     .meaning = "groups that a token's experts are in (llama; DeepSeek-V3: 4)", .derived = own, .min = 1, .max = 1e5},
    {.path = "model.router_scores", .type = choice, .meaning = "how the router weighs experts (llama; DeepSeek-V3: sigmoid)",
     .derived = own, .choices = words_of<router_scores_names>},
    {.path = "model.normalised_scores", .type = flag,
     .meaning = "the weights of a token's experts are divided by their sum (llama)", .derived = own},
    {.path = "model.score_scale", .type = number, .meaning = "factor on these weights (llama; DeepSeek-V3: 2.5)", .derived = own,
     .max = unbounded, .above_min = true},
    {.path = "model.predicted_tokens", .type = integer,
     .meaning = "multi-token prediction: modules behind the last layer, on the head's stage (llama; DeepSeek-V3: 1)", .derived = own,
     .min = 0, .max = 1},
    {.path = "model.mlp", .type = choice, .meaning = "the MLP's kind (llama); swiglu and geglu have a third matrix", .derived = own,
     .choices = words_of<mlp_names>},
    {.path = "model.norm", .type = choice, .meaning = "RMSNorm or LayerNorm (llama)", .derived = own, .choices = words_of<norm_names>},
    {.path = "model.norms", .type = choice,
     .meaning = "norms of a sub-layer's input, of its result (OLMo 2), or of both (Gemma 2) (llama)", .derived = own,
     .choices = words_of<norm_place_names>},
    {.path = "model.embedding_norm", .type = flag, .meaning = "a norm behind the embedding (llama; BLOOM)", .derived = own},
    {.path = "model.parallel", .type = choice,
     .meaning = "attention and MLP side by side, with one norm (GPT-J) or two (GPT-NeoX) (llama)", .derived = own,
     .choices = words_of<parallel_names>},
    {.path = "model.positions", .type = choice, .meaning = "how positions enter (llama)", .derived = own,
     .choices = words_of<positions_names>},
    {.path = "model.bias", .type = flag, .meaning = "biases of all Linears in layers, routers included (llama)", .derived = own},
    {.path = "model.out_bias", .type = flag, .meaning = "a bias of attention's output projection (llama)", .derived = own},
    {.path = "model.mlp_bias", .type = flag, .meaning = "biases of the MLPs, experts and routers (llama)", .derived = own},
    {.path = "model.head_bias", .type = flag, .meaning = "a bias of the vocabulary projection (llama; GPT-J)", .derived = own},
    {.path = "model.rope_theta", .type = number, .meaning = "base of the rotary angles (llama)",
     .derived = own,
     .max = unbounded, .above_min = true},
    {.path = "model.norm_epsilon", .type = number, .meaning = "added to the variance in norms",
     .derived = own,
     .max = 1, .above_min = true},
};
// clang-format on

}  // namespace

std::span<const Key> model_keys() { return model_table; }

}  // namespace slipway::scenarios
