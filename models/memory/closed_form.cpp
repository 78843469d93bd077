#include "models/memory/closed_form.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

bool unfused_scores(const MemoryInput& input) {
  return writes_scores(input.shape.kernels) && !input.shape.recompute_attention &&
         input.recompute != Recompute::selective;
}

// s·b·h / c: numbers of one hidden-wide tensor on a context rank.
double hidden_numbers(const MemoryInput& input) {
  return real(input.shape.sequence * input.shape.micro_batch * input.hidden) / input.shape.sharding.context;
}

// Divisor of what sequence parallelism shards.
double sequence_cut(const MemoryInput& input) {
  return input.shape.sharding.sequence_parallel ? input.shape.sharding.tensor : 1;
}

// What a norm without a kernel of its own keeps of each number besides its input.
double copy_bytes(const MemoryInput& input) {
  const double B = bytes_of(input.shape.dtype);
  return input.shape.kernels == Kernels::flash2_rmsnorm ? 0.0 : std::max(4.0, B);
}
double norm_copy_bytes(const MemoryInput& input) {
  return copy_bytes(input) * hidden_numbers(input) / sequence_cut(input);
}

// q = a·d, the width of all query heads.
double query_width(const MemoryInput& input) {
  return real(input.head_dim > 0 ? input.heads * input.head_dim : input.hidden);
}

// Gate, up, silu(gate) and product of each row; its input and its result; the router's results for it
// (models/model/operator_cost.cpp).
double experts_bytes(const MemoryInput& input) {
  const double B = bytes_of(input.shape.dtype), F = std::max(4.0, B), index = 8;
  const double rows = hidden_numbers(input) / real(input.hidden) * real(input.experts_per_token);
  return rows * (B * 4 * real(input.ffn) / input.shape.sharding.tensor + 2 * B * real(input.hidden) + F +
                 (B < F ? B : 0) + 3 * index);
}

// What one layer keeps, in units of hidden-wide tensors: inputs of two norms (and of those of heads); inputs of qkv and
// up; q, attention output, k and v; and gate, up, silu(gate), product. In bf16, 2 bytes each, they are the author's 4 +
// 4, 4 + 4k/a and 8f/h.
MemoryParts whole_layer(const MemoryInput& input) {
  const double B = bytes_of(input.shape.dtype), t = input.shape.sharding.tensor;
  const double h = real(input.hidden), a = real(input.heads), numbers = hidden_numbers(input);
  const double cut_tensor = B * numbers / sequence_cut(input);
  MemoryParts layer;
  layer[MemoryPart::norms] = 2 * cut_tensor;
  layer[MemoryPart::norm_copies] = 2 * norm_copy_bytes(input);
  layer[MemoryPart::projection_inputs] = 2 * cut_tensor;
  const double queries = numbers * query_width(input) / h / t, keys = queries * real(input.kv_heads) / a;
  layer[MemoryPart::attention] = B * (2 * queries + 2 * keys);
  layer[MemoryPart::mlp] = B * numbers * 4 * real(input.ffn) / h / t;
  if (input.experts > 0) layer[MemoryPart::mlp] = experts_bytes(input);
  if (input.qk_norm) {
    layer[MemoryPart::norms] += B * (queries + keys);
    layer[MemoryPart::norm_copies] += copy_bytes(input) * (queries + keys);
  }
  if (unfused_scores(input)) {
    const double s = real(input.shape.sequence);
    layer[MemoryPart::scores] =
        (2 * B + 1) * real(input.shape.micro_batch) * a * s * s / (t * input.shape.sharding.context);
  }
  return layer;
}

// Keys and values of the other context ranks, which the executor keeps where a trainer gathers them again, and the
// joined output (bytes_beside_shard).
MemoryParts with_gathered_keys_values(const MemoryInput& input, MemoryParts layer) {
  const Sharding& cut = input.shape.sharding;
  if (cut.context == 1 || cut.exchange == ContextExchange::ring) return layer;
  const double queries = hidden_numbers(input) * query_width(input) / real(input.hidden) / cut.tensor;
  const double keys = queries * real(input.kv_heads) / real(input.heads);
  layer[MemoryPart::attention] += bytes_of(input.shape.dtype) * ((cut.context - 1) * 2 * keys + queries);
  return layer;
}

// A layer that is made again has gathered the inputs of its projections, and keeps them for the little while.
MemoryParts made_again(const MemoryInput& input, MemoryParts layer) {
  layer[MemoryPart::projection_inputs] *= sequence_cut(input);
  return layer;
}

double layer_input_bytes(const MemoryInput& input) {
  return bytes_of(input.shape.dtype) * hidden_numbers(input) / sequence_cut(input);
}

void check(const MemoryInput& input) {
  const Sharding& cut = input.shape.sharding;
  if (std::min({cut.tensor, cut.context, input.pipeline, input.data, input.chunks}) < 1 || input.layers < 1 ||
      input.hidden < 1 || input.heads < 1)
    throw std::invalid_argument("memory in closed form: degrees, chunks, layers, hidden and heads must be at least 1");
}

double in_flight_factor(const MemoryInput& input) {
  const double p = input.pipeline;
  double factor = 1;
  if (input.micro_batches > 0 && input.micro_batches < input.pipeline) factor = real(input.micro_batches) / p;
  if (input.chunks > 1) factor *= 1 + (p - 1) / (p * input.chunks);
  return factor;
}

// Inputs of the final norm and of the head; and the logits, kept in fp32.
double head_bytes(const MemoryInput& input) { return 2 * layer_input_bytes(input) + norm_copy_bytes(input); }
double logit_bytes(const MemoryInput& input) {
  const double logits = hidden_numbers(input) / real(input.hidden) * real(input.vocab);
  const double B = bytes_of(input.shape.dtype);
  return std::max(4.0, B) * logits / input.shape.sharding.tensor;
}

void set_static_bytes(MemoryTerms& terms, const MemoryInput& input) {
  const double B = bytes_of(input.shape.dtype), replicas = input.data * input.shape.sharding.context;
  // Adam's two moments, and a master copy of the weight where that is narrower than fp32.
  const double optimizer = B < 4 ? 12 : 2 * B;
  terms.weights = terms.parameters * B / (input.zero >= 3 ? replicas : 1);
  terms.gradients = terms.parameters * bytes_of(input.gradient_dtype) / (input.zero >= 2 ? replicas : 1);
  terms.optimizer = terms.parameters * optimizer / (input.zero >= 1 ? replicas : 1);
}

}  // namespace

// [layers·layer + hV]/t, and hV/t + h with the head.
double shard_parameters(const MemoryInput& input, std::span<const StageShare> shares) {
  const double h = real(input.hidden), t = input.shape.sharding.tensor;
  const double kv_share = real(input.kv_heads) / real(input.heads);
  const double q = query_width(input), biases = input.qkv_bias ? q * (1 + 2 * kv_share) : 0;
  const double norms = 2 * h + (input.qk_norm ? 2 * q / real(input.heads) : 0);
  const double experts = real(std::max<std::int64_t>(1, input.experts)), router = h * real(input.experts);
  const double layer = 2 * h * q * (1 + kv_share) + experts * 3 * h * real(input.ffn) + norms + biases;
  double layers = 0;
  int embeddings = 0, heads = 0;
  for (const StageShare& share : shares) {
    layers += share.layers;
    embeddings += share.embedding ? 1 : 0;
    heads += share.head ? 1 : 0;
  }
  const int tables = input.tied ? std::max(embeddings, heads) : embeddings + heads;
  return (layers * layer + tables * h * real(input.vocab)) / t + layers * router + heads * h;
}

double static_bytes(const MemoryTerms& terms) { return terms.weights + terms.gradients + terms.optimizer; }

double activation_bytes(const MemoryTerms& terms) {
  return terms.layer_activations + terms.embedding_input + terms.head_and_loss;
}

double total_bytes(const MemoryTerms& terms) { return static_bytes(terms) + activation_bytes(terms); }

MemoryInput memory_input(const Model& model, const WorkShape& shape) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("model " + model.name +
                                ": memory in closed form is for Llama shapes with equal "
                                "layers; this model " +
                                why + "; use the simulated timeline");
  };
  if (model.runs.size() != 3) refuse("has layers of several shapes");
  const Block& layer = model.runs[1].block;
  if (model.family != Family::llama || layer.bias || layer.post_norm || layer.mlp != Mlp::swiglu)
    refuse("has other layers");
  MemoryInput input;
  input.layers = model.runs[1].count;
  input.hidden = layer.hidden;
  input.ffn = layer.ffn;
  input.heads = layer.heads;
  input.kv_heads = layer.kv_heads;
  input.head_dim = layer.head_dim;
  input.qkv_bias = layer.qkv_bias;
  input.qk_norm = layer.qk_norm;
  input.experts = layer.experts;
  input.experts_per_token = layer.experts_per_token;
  input.vocab = model.runs[0].block.vocab;
  input.shape = shape;
  input.tied = model.runs[2].block.tied;
  return input;
}

double layer_activation_bytes(const MemoryInput& input) {
  return input.recompute == Recompute::full ? layer_input_bytes(input) : sum(whole_layer(input));
}

MemoryTerms closed_form_memory(const MemoryInput& input) {
  check(input);
  const double p = input.pipeline, t = input.shape.sharding.tensor, B = bytes_of(input.shape.dtype);
  const double layers = input.layers_on_first_stage > 0 ? input.layers_on_first_stage : real(input.layers) / p;
  MemoryTerms terms;
  const StageShare first{layers, true, input.pipeline == 1, 1};
  terms.parameters = shard_parameters(input, std::span(&first, 1));
  set_static_bytes(terms, input);
  terms.in_flight_factor = in_flight_factor(input);
  terms.layer_activations = layer_activation_bytes(input) * layers * p * terms.in_flight_factor;
  if (input.recompute == Recompute::full) terms.layer_activations += sum(whole_layer(input));  // the one at work
  terms.embedding_input = 4 * B * hidden_numbers(input) * p / t * terms.in_flight_factor;
  if (input.pipeline == 1) terms.head_and_loss = head_bytes(input) + logit_bytes(input);
  return terms;
}

bool fits(const MemoryTerms& terms, double gpu_memory_bytes) {
  return total_bytes(terms) <= safe_share * gpu_memory_bytes;
}

namespace {

// All but full recompute's layer at work.
MemoryParts without_layer_at_work(const MemoryInput& input, std::span<const StageShare> shares,
                                  const MemoryParts& layer) {
  check(input);
  MemoryTerms terms;
  terms.parameters = shard_parameters(input, shares);
  set_static_bytes(terms, input);
  MemoryParts parts;
  parts[MemoryPart::weights] = terms.weights;
  parts[MemoryPart::gradients] = terms.gradients;
  parts[MemoryPart::optimizer] = terms.optimizer;
  double layers_held = 0;  // on this rank, times the micro-batches that each holds
  for (const StageShare& share : shares) {
    layers_held += share.layers * share.in_flight;
    if (share.embedding)
      parts[MemoryPart::embedding_input] +=
          4 * bytes_of(input.shape.dtype) * hidden_numbers(input) * share.in_flight / input.shape.sharding.tensor;
    if (!share.head) continue;
    parts[MemoryPart::head] += head_bytes(input) * share.in_flight;
    parts[MemoryPart::logits] += logit_bytes(input) * share.in_flight;
  }
  if (input.recompute == Recompute::full)
    parts[MemoryPart::layer_inputs] = layer_input_bytes(input) * layers_held;
  else
    parts += layers_held * layer;
  return parts;
}

}  // namespace

MemoryParts stage_memory(const MemoryInput& input, std::span<const StageShare> shares) {
  const MemoryParts layer = with_gathered_keys_values(input, whole_layer(input));
  const MemoryParts parts = without_layer_at_work(input, shares, layer);
  if (input.recompute != Recompute::full) return parts;
  double head_held = 0;
  for (const StageShare& share : shares) head_held += share.head ? share.in_flight : 0;
  const MemoryParts second = at_layer(parts, made_again(input, layer), head_held);
  return sum(second) > sum(parts) ? second : parts;
}

MemoryParts stage_memory_together(const MemoryInput& input, std::span<const StageShare> shares) {
  const MemoryParts layer = whole_layer(input);
  MemoryParts parts = without_layer_at_work(input, shares, layer);
  if (input.recompute == Recompute::full) parts += layer;
  return parts;
}

}  // namespace slipway::models
