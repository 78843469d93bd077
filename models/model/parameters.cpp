#include "models/model/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace slipway::models {
namespace {

constexpr double base_std = 0.02;  // Radford 2019 (GPT-2); Megatron-LM's default

// `shard_parts` empty and shard_dim = -1: replicated.
Parameter matrix(std::string name, std::int64_t rows, std::int64_t columns, int shard_dim,
                 std::vector<std::int64_t> parts = {}) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.shape = {rows, columns};
  parameter.shard_dim = shard_dim;
  parameter.parts = std::move(parts);
  parameter.init_std = base_std;
  return parameter;
}

Parameter vector_of(std::string name, std::int64_t size, double value, int shard_dim = -1,
                    std::vector<std::int64_t> parts = {}) {
  Parameter parameter = matrix(std::move(name), size, 1, shard_dim, std::move(parts));
  parameter.is_vector = true;
  parameter.decays = false;
  parameter.constant = true;
  parameter.constant_value = value;
  return parameter;
}

void add_norm(std::vector<Parameter>& list, const Block& block, const std::string& name) {
  list.push_back(vector_of(name + ".weight", block.hidden, 1.0));
  if (block.norm == Norm::layer) list.push_back(vector_of(name + ".bias", block.hidden, 0.0));
}

// Norms of all heads at once are on one tensor rank (operators.cpp), so none has a part of their gradient.
void add_qk_norms(std::vector<Parameter>& list, const Block& block, const std::string& prefix) {
  if (!block.qk_norm || block.qk_norm_over == QkNorm::unweighted) return;
  const bool all = block.qk_norm_over == QkNorm::all;
  const auto add = [&](const char* name, std::int64_t heads) {
    list.push_back(vector_of(prefix + name, all ? heads * block.head_dim : block.head_dim, 1.0));
    list.back().partial = !all;
  };
  add("attention.q_norm.weight", block.heads);
  add("attention.k_norm.weight", block.kv_heads);
}

double residual_std(std::int64_t layers) { return base_std / std::sqrt(2.0 * static_cast<double>(layers)); }

// Latents: their norms and their replicated matrices.
void add_latents(std::vector<Parameter>& list, const Block& block, const std::string& prefix) {
  const std::string name = prefix + "attention.";
  if (block.q_latent > 0) list.push_back(vector_of(name + "q_latent_norm.weight", block.q_latent, 1.0));
  list.push_back(vector_of(name + "kv_latent_norm.weight", block.kv_latent, 1.0));
  if (block.q_latent > 0) list.push_back(matrix(name + "q_down.weight", block.q_latent, block.hidden, -1));
  list.push_back(matrix(name + "kv_down.weight", block.kv_latent + block.rope_head_dim, block.hidden, -1));
}

// Parameters divided by heads, except the output projection.
void add_heads(std::vector<Parameter>& list, const Block& block, const std::string& prefix) {
  const std::int64_t q = block.heads * block.head_dim, k = block.kv_heads * block.head_dim;
  const std::int64_t v = block.kv_heads * value_dim(block);
  const std::string name = prefix + "attention.";
  if (is_latent(block)) {
    const std::int64_t plain = block.heads * (block.head_dim - block.rope_head_dim);
    const std::int64_t from = block.q_latent > 0 ? block.q_latent : block.hidden;
    list.push_back(matrix(name + "q_up.weight", q, from, 0));
    list.push_back(matrix(name + "kv_up.weight", plain + v, block.kv_latent, 0, {plain, v}));
  } else {
    const std::vector<std::int64_t> parts{q, k, v};
    const std::vector<std::int64_t> heads{block.heads, block.kv_heads, block.kv_heads};
    list.push_back(matrix(name + "qkv.weight", q + k + v, block.hidden, 0, parts));
    list.back().heads = heads;
    if (has_qkv_bias(block)) {
      list.push_back(vector_of(name + "qkv.bias", q + k + v, 0.0, 0, parts));
      list.back().heads = heads;
    }
  }
  if (block.sinks) list.push_back(vector_of(name + "sinks", block.heads, 0.0, 0));
}

std::vector<Parameter> embedding_parameters(const Block& block, const std::string& prefix) {
  std::vector<Parameter> list;
  const std::string name = prefix + "embedding";
  if (block.positions == Positions::learned)
    list.push_back(matrix(name + ".positions", block.max_positions, block.hidden, -1));
  if (block.token_types > 0) list.push_back(matrix(name + ".token_types", block.token_types, block.hidden, -1));
  if (block.post_norm || block.embedding_norm) add_norm(list, block, name + ".norm");
  list.push_back(matrix(name + ".weight", block.vocab, block.hidden, 0));
  return list;
}

std::vector<Parameter> transformer_parameters(const Block& block, const std::string& prefix, std::int64_t layers) {
  const std::int64_t experts = std::max<std::int64_t>(1, block.experts);
  // With experts: gate and up of the first, gate and up of the second, ...; their down matrices one below the other.
  const std::vector<std::int64_t> up(experts * (is_gated(block.mlp) ? 2 : 1), block.ffn);

  std::vector<Parameter> list;
  add_qk_norms(list, block, prefix);
  if (block.experts > 0) {
    list.push_back(matrix(prefix + "mlp.router.weight", block.experts, block.hidden, -1));
    list.back().partial = true;
    if (has_mlp_bias(block)) {
      list.push_back(vector_of(prefix + "mlp.router.linear.bias", block.experts, 0.0));
      list.back().partial = true;
    }
    if (block.router_bias) {
      list.push_back(vector_of(prefix + "mlp.router.bias", block.experts, 0.0));
      list.back().balances = true;
    }
  }
  if (block.norms != NormPlace::result) {
    add_norm(list, block, prefix + "norm1");
    if (block.parallel != Parallel::one_norm) add_norm(list, block, prefix + "norm2");
  }
  if (block.norms != NormPlace::input) {
    add_norm(list, block, prefix + "result_norm1");
    if (block.parallel == Parallel::none) add_norm(list, block, prefix + "result_norm2");
  }
  if (has_out_bias(block)) list.push_back(vector_of(prefix + "attention.out.bias", block.hidden, 0.0));
  if (has_mlp_bias(block) && (block.experts == 0 || block.shared_ffn > 0))
    list.push_back(
        vector_of(prefix + (block.experts == 0 ? "mlp.down.bias" : "mlp.shared.down.bias"), block.hidden, 0.0));
  if (is_latent(block)) add_latents(list, block, prefix);
  add_heads(list, block, prefix);
  Parameter out = matrix(prefix + "attention.out.weight", block.hidden, block.heads * value_dim(block), 1);
  out.init_std = residual_std(layers);
  list.push_back(std::move(out));
  const auto add_mlp = [&](const std::string& name, const std::vector<std::int64_t>& parts, std::int64_t down_rows) {
    const std::int64_t width = parts.front(), rows = static_cast<std::int64_t>(parts.size()) * width;
    list.push_back(matrix(name + "up.weight", rows, block.hidden, 0, parts));
    if (has_mlp_bias(block)) list.push_back(vector_of(name + "up.bias", rows, 0.0, 0, parts));
    list.push_back(matrix(name + "down.weight", down_rows, width, 1));
    list.back().init_std = residual_std(layers);
  };
  if (block.shared_ffn > 0)
    add_mlp(prefix + "mlp.shared.", std::vector<std::int64_t>(is_gated(block.mlp) ? 2 : 1, block.shared_ffn),
            block.hidden);
  const std::size_t dense = list.size();
  add_mlp(prefix + "mlp.", up, experts * block.hidden);
  // A row of each expert; on every rank that cuts the expert, like its router.
  if (block.experts > 0 && has_mlp_bias(block))
    list.push_back(vector_of(prefix + "mlp.down.bias", block.experts * block.hidden, 0.0));
  for (std::size_t i = dense; i < list.size() && block.experts > 0; ++i) list[i].experts = block.experts;
  return list;
}

// Two norms, a projection of both, a layer, a norm; and the embedding's matrix, unless the head has it.
void add_prediction(std::vector<Parameter>& list, const Block& block, std::int64_t layers) {
  const std::string name = "prediction.";
  add_norm(list, block, name + "embedding_norm");
  add_norm(list, block, name + "residual_norm");
  add_norm(list, block, name + "norm");
  list.push_back(matrix(name + "project.weight", block.hidden, 2 * block.hidden, -1));
  for (Parameter& parameter : transformer_parameters(block, name, layers)) list.push_back(std::move(parameter));
  if (block.tied) return;
  list.push_back(matrix(name + "embedding.weight", block.vocab, block.hidden, 0));
  list.back().same_as = "embedding.weight";
}

std::vector<Parameter> head_parameters(const Block& block, const std::string& prefix, std::int64_t layers) {
  std::vector<Parameter> list;
  const std::string name = prefix + "head";
  if (block.post_norm) {  // BERT's masked-LM transform: dense, gelu, norm
    list.push_back(matrix(name + ".transform.weight", block.hidden, block.hidden, -1));
    if (block.bias) list.push_back(vector_of(name + ".transform.bias", block.hidden, 0.0));
  }
  add_norm(list, block, name + ".norm");
  list.push_back(matrix(name + ".weight", block.vocab, block.hidden, 0));
  if (block.tied) list.back().same_as = "embedding.weight";
  if (block.bias && block.predicted_tokens == 0) list.push_back(vector_of(name + ".bias", block.vocab, 0.0, 0));
  if (block.predicted_tokens == 0) return list;
  add_prediction(list, block, layers);
  std::stable_sort(list.begin(), list.end(), [](const Parameter& a, const Parameter& b) {
    const auto place = [](const Parameter& p) { return p.experts > 0 ? 3 : p.partial ? 0 : p.shard_dim < 0 ? 1 : 2; };
    return place(a) < place(b);
  });
  return list;
}

// Tensor ranks with the same rows of a part.
int copies_of_part(const Parameter& parameter, std::size_t part, int degree) {
  if (part >= parameter.heads.size()) return 1;
  const std::int64_t heads = parameter.heads[part];
  return degree > heads && degree % heads == 0 ? static_cast<int>(degree / heads) : 1;
}

// Parts along shard_dim; a tensor that is not packed is one part.
std::vector<std::int64_t> parts_of(const Parameter& parameter) {
  if (!parameter.parts.empty()) return parameter.parts;
  return {parameter.shape[parameter.shard_dim == 1 ? 1 : 0]};
}

// The run of a block, and how many layers stand before the block.
struct RunOfBlock {
  const BlockRun& run;
  std::int64_t layers_before = 0;
};
RunOfBlock run_of_block(const Model& model, int block_index) {
  std::int64_t first = 0, layer = 0;  // of the present run
  for (const BlockRun& run : model.runs) {
    if (block_index >= first && block_index < first + run.count) return {run, layer + block_index - first};
    first += run.count;
    if (run.block.kind == BlockKind::transformer) layer += run.count;
  }
  throw std::invalid_argument("model " + model.name + " has blocks 0.." + std::to_string(first - 1) + ", no block " +
                              std::to_string(block_index));
}

}  // namespace

std::int64_t elements_of(const Parameter& parameter) { return parameter.shape[0] * parameter.shape[1]; }

std::vector<Parameter> parameters_of(const Block& block, const std::string& prefix, std::int64_t layers) {
  switch (block.kind) {
    case BlockKind::embedding:
      return embedding_parameters(block, prefix);
    case BlockKind::transformer:
      return transformer_parameters(block, prefix, layers);
    case BlockKind::head:
      return head_parameters(block, prefix, layers);
  }
  return {};
}

std::vector<Parameter> parameters_of(const Model& model, int block_index) {
  const auto [run, layer] = run_of_block(model, block_index);
  const bool transformer = run.block.kind == BlockKind::transformer;
  return parameters_of(run.block, transformer ? "layers." + std::to_string(layer) + "." : "", layer_count(model));
}

std::vector<Piece> pieces_of(const Parameter& parameter, int rank, int degree) {
  if (rank < 0 || rank >= degree)
    throw std::invalid_argument("tensor rank " + std::to_string(rank) + " is outside 0.." + std::to_string(degree - 1));
  if (parameter.shard_dim < 0) return {{0, parameter.shape[0]}};
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  const std::vector<std::int64_t> parts = parts_of(parameter);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t part = parts[i];
    const int copies = copies_of_part(parameter, i, degree), shards = degree / copies;
    if (part % shards != 0)
      throw std::invalid_argument(parameter.name + ": a part of " + std::to_string(part) +
                                  " rows or columns cannot be cut into " + std::to_string(shards) +
                                  " equal shards; choose a tensor degree that divides it");
    const std::int64_t size = part / shards, shard = rank / copies;
    pieces.push_back({begin + shard * size, begin + (shard + 1) * size});
    begin += part;
  }
  return pieces;
}

std::int64_t shard_elements(const Parameter& parameter, int degree) {
  std::int64_t along = 0;
  for (const Piece& piece : pieces_of(parameter, 0, degree)) along += piece.end - piece.begin;
  return along * parameter.shape[parameter.shard_dim == 1 ? 0 : 1];
}

int copies_of(const Parameter& parameter, int degree) {
  return copies_of_part(parameter, parameter.heads.size() - 1, degree);
}

std::vector<Piece> own_pieces_of(const Parameter& parameter, int rank, int degree) {
  std::vector<Piece> pieces = pieces_of(parameter, rank, degree);
  while (!pieces.empty() && rank % copies_of_part(parameter, pieces.size() - 1, degree) != 0) pieces.pop_back();
  return pieces;
}

std::int64_t copied_elements(const Parameter& parameter, int degree) {
  if (copies_of(parameter, degree) == 1) return 0;
  std::int64_t own = 0;  // of a rank whose keys and values a lower one has
  for (const Piece& piece : own_pieces_of(parameter, 1, degree)) own += piece.end - piece.begin;
  return shard_elements(parameter, degree) - own * parameter.shape[parameter.shard_dim == 1 ? 0 : 1];
}

BlockElements block_shard_elements(const Model& model, int block_index, const Sharding& sharding, bool shares_table) {
  BlockElements elements;
  const bool is_layer = run_of_block(model, block_index).run.block.kind == BlockKind::transformer;
  for (const Parameter& parameter : parameters_of(model, block_index)) {
    if (shares_table && !parameter.same_as.empty()) continue;
    if (parameter.experts == 0 || !dispatches(sharding)) {
      const std::int64_t dense = shard_elements(parameter, sharding.tensor);
      elements.dense += dense;
      if (is_layer && !parameter.is_vector && parameter.shard_dim >= 0) elements.linears += dense;
      continue;
    }
    if (parameter.experts % sharding.expert != 0)
      throw std::invalid_argument(parameter.name + ": " + std::to_string(parameter.experts) +
                                  " experts cannot be divided among " + std::to_string(sharding.expert) +
                                  " ranks; choose an expert degree that divides them");
    elements.experts += shard_elements(parameter, expert_tensor_of(sharding)) / sharding.expert;
  }
  return elements;
}

bool is_summed_over_tensor(const Parameter& parameter, int degree, bool sequence_parallel) {
  return degree > 1 && parameter.shard_dim < 0 && (parameter.partial || sequence_parallel);
}

std::int64_t block_tensor_sum_elements(const Model& model, int block_index, int degree, bool sequence_parallel) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters_of(model, block_index))
    if (is_summed_over_tensor(parameter, degree, sequence_parallel)) sum += elements_of(parameter);
  return sum;
}

std::int64_t block_copied_elements(const Model& model, int block_index, int degree) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters_of(model, block_index)) sum += copied_elements(parameter, degree);
  return sum;
}

std::map<std::string, std::string> settings_without_shape(const Model& model) {
  std::map<std::string, std::string> settings;
  std::int64_t layer = 0;
  for (const BlockRun& run : model.runs) {
    const Block& block = run.block;
    if (block.kind == BlockKind::head) settings["tied"] = block.tied ? "true" : "false";
    if (block.kind != BlockKind::transformer) continue;
    const std::string from = layer == 0 ? "" : " from layer " + std::to_string(layer);
    const auto say = [&](const std::string& name, double value) {
      char digits[40];
      *std::to_chars(digits, digits + sizeof digits - 1, value).ptr = '\0';
      settings[name + from] = digits;
    };
    say("heads", static_cast<double>(block.heads));
    say("kv_heads", static_cast<double>(block.kv_heads));
    say("head_dim", static_cast<double>(block.head_dim));
    if (block.experts > 0) say("experts_per_token", static_cast<double>(block.experts_per_token));
    if (block.rope_head_dim > 0) say("rope_head_dim", static_cast<double>(block.rope_head_dim));
    if (block.window > 0) say("window", static_cast<double>(block.window));
    if (block.window_chunks) say("window_chunks", 1);
    if (block.qk_norm && block.qk_norm_over == QkNorm::unweighted) say("unweighted_qk_norm", 1);
    if (block.mlp != Mlp::swiglu && block.mlp != Mlp::gelu) say(name_in(mlp_names, block.mlp), 1);
    if (block.positions == Positions::alibi) say("alibi", 1);
    say("causal", block.causal ? 1 : 0);
    say("post_norm", block.post_norm ? 1 : 0);
    say("norm_epsilon", block.norm_epsilon);
    if (block.positions == Positions::rotary) say("rope_theta", block.rope_theta);
    layer += run.count;
  }
  return settings;
}

}  // namespace slipway::models
