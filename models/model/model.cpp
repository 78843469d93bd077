#include "models/model/model.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "models/model/parameters.h"

namespace slipway::models {
namespace {

std::int64_t head_dim_of(const std::string& model, std::int64_t hidden, std::int64_t heads, std::int64_t given) {
  if (given > 0) return given;
  if (heads <= 0 || hidden % heads != 0)
    throw std::invalid_argument("model " + model + ": hidden = " + std::to_string(hidden) +
                                " is not a multiple of heads = " + std::to_string(heads) +
                                "; give head_dim or change one of them");
  return hidden / heads;
}

// The common features of embedding, transformer and head.
Block block_of(BlockKind kind, const Block& features) {
  Block block = features;
  block.kind = kind;
  const bool table = kind != BlockKind::transformer;
  if (table) {
    const Block without;
    block.experts = block.experts_per_token = block.shared_ffn = 0;
    block.scores = without.scores, block.normalises_scores = without.normalises_scores;
    block.score_scale = without.score_scale;
    block.expert_groups = block.groups_per_token = 1;
  }
  if (table) block.ffn = block.heads = block.kv_heads = block.head_dim = 0;
  if (table) {
    block.v_head_dim = block.rope_head_dim = block.kv_latent = block.q_latent = block.window = 0;
    block.window_chunks = block.sinks = block.out_bias = block.mlp_bias = false;
    block.norms = NormPlace::input;
    block.parallel = Parallel::none;
    block.qk_norm_over = QkNorm::head;
  }
  if (!table) block.vocab = 0;
  if (kind != BlockKind::embedding) block.embedding_norm = false;
  if (kind != BlockKind::head) block.predicted_tokens = 0;
  if (kind != BlockKind::embedding) block.max_positions = block.token_types = 0;
  if (kind != BlockKind::head) block.tied = false;
  if (table) block.qkv_bias = block.qk_norm = false;
  return block;
}

Model model_of(std::string name, Family family, std::int64_t layers, std::int64_t sequence, const Block& features) {
  Model model;
  model.name = std::move(name);
  model.family = family;
  model.sequence = sequence;
  model.runs = {{block_of(BlockKind::embedding, features), 1},
                {block_of(BlockKind::transformer, features), layers},
                {block_of(BlockKind::head, features), 1}};
  return model;
}

// GPT-2 and BERT alike: LayerNorm, GELU, biases, learned positions.
template <typename Shape>
Block learned_position_features(const std::string& name, const Shape& shape) {
  Block features;
  features.hidden = shape.hidden;
  features.ffn = shape.ffn;
  features.heads = features.kv_heads = shape.heads;
  features.head_dim = head_dim_of(name, shape.hidden, shape.heads, 0);
  features.vocab = shape.vocab;
  features.max_positions = shape.max_positions;
  features.norm = Norm::layer;
  features.mlp = Mlp::gelu;
  features.positions = Positions::learned;
  features.bias = true;
  features.norm_epsilon = shape.norm_epsilon;
  return features;
}

std::int64_t sum_of_blocks(const Model& model) {
  std::int64_t sum = 0;
  for (const BlockRun& run : model.runs) sum += run.count * parameter_count(run.block);
  return sum;
}

// Parameters of the experts that a token does not go through.
std::int64_t idle_parameters(const Model& model) {
  std::int64_t sum = 0;
  for (const BlockRun& run : model.runs)
    sum += run.count * (run.block.experts - run.block.experts_per_token) * (is_gated(run.block.mlp) ? 3 : 2) *
           run.block.hidden * run.block.ffn;
  return sum;
}

}  // namespace

bool is_causal(const Model& model) {
  for (const BlockRun& run : model.runs)
    if (run.block.kind == BlockKind::transformer) return run.block.causal;
  return true;
}

std::vector<Block> blocks_of(const Model& model) {
  std::vector<Block> blocks;
  for (const BlockRun& run : model.runs) blocks.insert(blocks.end(), static_cast<std::size_t>(run.count), run.block);
  return blocks;
}

std::int64_t layer_count(const Model& model) {
  std::int64_t layers = 0;
  for (const BlockRun& run : model.runs)
    if (run.block.kind == BlockKind::transformer) layers += run.count;
  return layers;
}

std::int64_t parameter_count(const Block& block) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters_of(block, "", 1)) sum += elements_of(parameter);
  return sum;
}

std::int64_t parameter_count(const Model& model) {
  std::int64_t sum = sum_of_blocks(model);
  for (const BlockRun& run : model.runs)
    if (run.block.kind == BlockKind::head && reads_table(run.block))
      sum -= run.count * run.block.vocab * run.block.hidden;
  return sum;
}

// The copy of the embedding that multi-token prediction has counts: its matrix is as large as that of the head, which a
// token goes through once more. With a tied head that copy is not counted.
std::int64_t mfu_parameter_count(const Model& model) { return sum_of_blocks(model) - idle_parameters(model); }

std::int64_t active_parameter_count(const Model& model) { return parameter_count(model) - idle_parameters(model); }

int kv_copies(const Block& block, int tensor) {
  if (block.kv_heads < 1 || tensor <= block.kv_heads || tensor % block.kv_heads != 0) return 1;
  return static_cast<int>(tensor / block.kv_heads);
}

std::int64_t kv_heads_of_rank(const Block& block, int tensor) {
  return block.kv_heads * kv_copies(block, tensor) / tensor;
}

std::vector<int> kv_copies(const Model& model, int tensor) {
  std::set<int> found;
  for (const BlockRun& run : model.runs) found.insert(kv_copies(run.block, tensor));
  found.erase(1);
  return {found.begin(), found.end()};
}

bool has_experts(const Model& model) {
  return std::any_of(model.runs.begin(), model.runs.end(), [](const BlockRun& run) { return run.block.experts > 0; });
}

double mfu_flops_per_token(const Model& model) {
  double attention = 0;  // 12·q·s for each layer; half of it is of the width of values
  for (const BlockRun& run : model.runs) {
    const Block& block = run.block;
    attention +=
        6.0 * static_cast<double>(run.count * block.heads * (block.head_dim + value_dim(block)) * model.sequence);
  }
  return 6.0 * static_cast<double>(mfu_parameter_count(model)) + attention;
}

Model llama(std::string name, const LlamaShape& shape) {
  Block features;
  features.hidden = shape.hidden;
  features.ffn = shape.ffn;
  features.heads = shape.heads;
  features.kv_heads = shape.kv_heads;
  features.head_dim = head_dim_of(name, shape.hidden, shape.heads, shape.head_dim);
  features.vocab = shape.vocab;
  features.tied = shape.tied;
  features.qkv_bias = shape.qkv_bias;
  features.qk_norm = shape.qk_norm;
  features.experts = shape.experts;
  features.experts_per_token = shape.experts_per_token;
  features.shared_ffn = shape.shared_ffn;
  features.rope_theta = shape.rope_theta;
  features.norm_epsilon = shape.norm_epsilon;
  return model_of(std::move(name), Family::llama, shape.layers, shape.sequence, features);
}

Model decoder(std::string name, Family family, std::int64_t sequence, const Block& features,
              const std::vector<Block>& layers) {
  Model model;
  model.name = std::move(name);
  model.family = family;
  model.sequence = sequence;
  model.runs = {{block_of(BlockKind::embedding, features), 1}};
  for (const Block& layer : layers) {
    const Block block = block_of(BlockKind::transformer, layer);
    if (model.runs.back().block == block)
      ++model.runs.back().count;
    else
      model.runs.push_back({block, 1});
  }
  Block head = block_of(BlockKind::head, features);
  if (features.predicted_tokens > 0) {
    const Block last = model.runs.back().block;
    const Block plain = head;
    head = last;
    head.kind = BlockKind::head;
    head.vocab = plain.vocab, head.tied = plain.tied, head.predicted_tokens = features.predicted_tokens;
  }
  model.runs.push_back({head, 1});
  return model;
}

Model gpt(std::string name, const GptShape& shape) {
  Block features = learned_position_features(name, shape);
  features.tied = shape.tied;
  Model model = model_of(std::move(name), Family::gpt, shape.layers, shape.sequence, features);
  model.runs.back().block.bias = false;  // GPT-2's vocabulary projection has no bias
  return model;
}

Model bert(std::string name, const BertShape& shape) {
  Block features = learned_position_features(name, shape);
  features.token_types = shape.token_types;
  features.causal = false;
  features.post_norm = true;
  features.tied = shape.tied;
  return model_of(std::move(name), Family::bert, shape.layers, shape.sequence, features);
}

}  // namespace slipway::models
