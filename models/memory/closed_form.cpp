#include "models/memory/closed_form.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

// s·b·h / c: numbers of one hidden-wide tensor on a context rank.
double hidden_numbers(const MemoryInput& input) {
  return real(input.shape.sequence * input.shape.micro_batch * input.hidden) / input.shape.sharding.context;
}

// Divisor of what sequence parallelism shards.
double sequence_cut(const MemoryInput& input) {
  return input.shape.sharding.sequence_parallel ? input.shape.sharding.tensor : 1;
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

double first_shard_parameters(const MemoryInput& input) {
  const double h = real(input.hidden), t = input.shape.sharding.tensor, table = h * real(input.vocab);
  const double kv_share = real(input.kv_heads) / real(input.heads);
  const double layer = 2 * h * h * (1 + kv_share) + 3 * h * real(input.ffn) + 2 * h;
  const double first = real(input.layers) / input.pipeline * layer + table;
  return input.pipeline == 1 ? (first + table) / t + h : first / t;
}

}  // namespace

double static_bytes(const MemoryTerms& terms) { return terms.weights + terms.gradients + terms.optimizer; }

double activation_bytes(const MemoryTerms& terms) {
  return terms.layer_activations + terms.embedding_input + terms.head_and_loss;
}

double total_bytes(const MemoryTerms& terms) { return static_bytes(terms) + activation_bytes(terms); }

MemoryInput memory_input(const Model& model, const WorkShape& shape) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("model " + model.name +
                                ": the closed form of Fujii et al. 2024 is for untied Llamas in " +
                                "16 bits; this model " + why + "; use the timeline and the estimate");
  };
  if (model.runs.size() != 3) refuse("has layers of several shapes");
  const Block& layer = model.runs[1].block;
  if (model.family != Family::llama || layer.bias || layer.post_norm || layer.mlp != Mlp::swiglu)
    refuse("has other layers");
  if (is_latent(layer) || layer.norms != NormPlace::input || layer.parallel != Parallel::none || layer.window > 0 ||
      layer.norm != Norm::rms || layer.positions != Positions::rotary || layer.out_bias || layer.mlp_bias ||
      layer.sinks || model.runs[2].block.predicted_tokens > 0)
    refuse("has other attention, norms or positions");
  if (layer.qkv_bias || layer.qk_norm || layer.experts > 0 || layer.heads * layer.head_dim != layer.hidden)
    refuse("has biases, norms of heads, heads of another width or experts");
  if (model.runs[2].block.tied) refuse("ties its head");
  if (bytes_of(shape.dtype) != 2) refuse("is trained in another width");
  MemoryInput input;
  input.layers = model.runs[1].count;
  input.hidden = layer.hidden;
  input.ffn = layer.ffn;
  input.heads = layer.heads;
  input.kv_heads = layer.kv_heads;
  input.vocab = model.runs[0].block.vocab;
  input.shape = shape;
  return input;
}

double layer_activation_bytes(const MemoryInput& input) {
  const double h = real(input.hidden), t = input.shape.sharding.tensor, s = real(input.shape.sequence);
  // 8 of the 12 are inputs of norms and of column-parallel projections, 4 are the queries and attention's output.
  const double heads = 4 + 4 * real(input.kv_heads) / real(input.heads) + 8 * real(input.ffn) / h;
  const double bytes = hidden_numbers(input) * (8 / sequence_cut(input) + heads / t);
  if (!writes_scores(input.shape.kernels) || input.shape.recompute_attention) return bytes;
  return bytes + 5 * real(input.shape.micro_batch) * real(input.heads) * s * s / (t * input.shape.sharding.context);
}

MemoryTerms closed_form_memory(const MemoryInput& input) {
  check(input);
  const double p = input.pipeline, replicas = input.data * input.shape.sharding.context;
  MemoryTerms terms;
  terms.parameters = first_shard_parameters(input);
  terms.weights = terms.parameters * 2 / (input.zero >= 3 ? replicas : 1);
  terms.gradients = terms.parameters * bytes_of(input.gradient_dtype) / (input.zero >= 2 ? replicas : 1);
  terms.optimizer = terms.parameters * 12 / (input.zero >= 1 ? replicas : 1);
  const double held = p * in_flight_factor(input);
  terms.layer_activations = layer_activation_bytes(input) * real(input.layers) / p * held;
  terms.embedding_input = 8 * hidden_numbers(input) / sequence_cut(input) * held;
  if (input.pipeline == 1)
    terms.head_and_loss =
        4 * hidden_numbers(input) *
        (1 / sequence_cut(input) + real(input.vocab) / real(input.hidden) / input.shape.sharding.tensor);
  return terms;
}

bool fits(const MemoryTerms& terms, double gpu_memory_bytes) {
  return total_bytes(terms) <= safe_share * gpu_memory_bytes;
}

}  // namespace slipway::models
