#include "models/memory.h"

#include <algorithm>
#include <stdexcept>

namespace slipway {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

bool unfused_scores(const MemoryInput& input) {
  const Kernels kernels = input.shape.kernels;
  return (kernels == Kernels::torch || kernels == Kernels::fused_softmax) &&
         !input.shape.recompute_attention && input.recompute != Recompute::selective;
}

// s·b·h / c: numbers of one hidden-wide tensor on a context rank.
double hidden_numbers(const MemoryInput& input) {
  return real(input.shape.sequence * input.shape.micro_batch * input.hidden) / input.shape.sharding.context;
}

// Divisor of what sequence parallelism shards.
double sequence_cut(const MemoryInput& input) {
  return input.shape.sharding.sequence_parallel ? input.shape.sharding.tensor : 1;
}

double whole_layer_bytes(const MemoryInput& input) {
  const double B = bytes_of(input.shape.dtype), wide = std::max(4.0, B), t = input.shape.sharding.tensor;
  const double h = real(input.hidden), a = real(input.heads);
  const double numbers = hidden_numbers(input);
  // In units of hidden-wide tensors: inputs of two norms, qkv and up; then q, attention output, k and v;
  // and gate, up, silu(gate), product. In bf16, 2 bytes each, they are the author's 8, 4 + 4k/a and 8f/h.
  double bytes = B * numbers * 4 / sequence_cut(input);
  bytes += B * numbers * (2 + 2 * real(input.kv_heads) / a + 4 * real(input.ffn) / h) / t;
  if (input.shape.kernels != Kernels::flash2_rmsnorm) bytes += 2 * wide * numbers / sequence_cut(input);
  if (unfused_scores(input)) {
    const double s = real(input.shape.sequence);
    bytes += (2 * B + 1) * real(input.shape.micro_batch) * a * s * s / (t * input.shape.sharding.context);
  }
  return bytes;
}

void check(const MemoryInput& input) {
  const Sharding& cut = input.shape.sharding;
  if (std::min({cut.tensor, cut.context, input.pipeline, input.data, input.chunks}) < 1 ||
      input.layers < 1 || input.hidden < 1 || input.heads < 1)
    throw std::invalid_argument(
        "memory in closed form: degrees, chunks, layers, hidden and heads must be at least 1");
}

double in_flight_factor(const MemoryInput& input) {
  const double p = input.pipeline;
  double factor = 1;
  if (input.micro_batches > 0 && input.micro_batches < input.pipeline)
    factor = real(input.micro_batches) / p;
  if (input.chunks > 1) factor *= 1 + (p - 1) / (p * input.chunks);
  return factor;
}

// [L·layer/p + hV]/t, and the head where the first stage is also the last.
double first_stage_parameters(const MemoryInput& input, double layers) {
  const double h = real(input.hidden), table = h * real(input.vocab), t = input.shape.sharding.tensor;
  const double kv_share = real(input.kv_heads) / real(input.heads);
  const double layer = 2 * h * h * (1 + kv_share) + 3 * h * real(input.ffn) + 2 * h;
  const double parameters = (layers * layer + table) / t;
  return input.pipeline == 1 ? parameters + table / t + h : parameters;
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

double static_bytes(const MemoryTerms& terms) { return terms.weights + terms.gradients + terms.optimizer; }

double activation_bytes(const MemoryTerms& terms) {
  return terms.layer_activations + terms.embedding_input + terms.head_and_loss;
}

double total_bytes(const MemoryTerms& terms) { return static_bytes(terms) + activation_bytes(terms); }

MemoryInput memory_input(const Model& model, const WorkShape& shape) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("model " + model.name +
                                ": memory in closed form is for Llama shapes with equal "
                                "layers and an untied head; this model " +
                                why + "; use the simulated timeline");
  };
  if (model.runs.size() != 3) refuse("has layers of several shapes");
  const Block& layer = model.runs[1].block;
  if (model.family != Family::llama || layer.bias || layer.post_norm || layer.mlp != Mlp::swiglu)
    refuse("has other layers");
  if (model.runs[2].block.tied) refuse("has a tied head");
  if (layer.head_dim * layer.heads != layer.hidden) refuse("has heads that are not hidden/heads wide");
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
  if (input.recompute == Recompute::full)
    return bytes_of(input.shape.dtype) * hidden_numbers(input) / sequence_cut(input);
  return whole_layer_bytes(input);
}

MemoryTerms closed_form_memory(const MemoryInput& input) {
  check(input);
  const double p = input.pipeline, t = input.shape.sharding.tensor, B = bytes_of(input.shape.dtype);
  const double layers =
      input.layers_on_first_stage > 0 ? input.layers_on_first_stage : real(input.layers) / p;
  MemoryTerms terms;
  terms.parameters = first_stage_parameters(input, layers);
  set_static_bytes(terms, input);
  terms.in_flight_factor = in_flight_factor(input);
  terms.layer_activations = layer_activation_bytes(input) * layers * p * terms.in_flight_factor;
  if (input.recompute == Recompute::full)
    terms.layer_activations += whole_layer_bytes(input);  // the one at work
  terms.embedding_input = 4 * B * hidden_numbers(input) * p / t * terms.in_flight_factor;
  if (input.pipeline == 1) {
    const double logits = hidden_numbers(input) / real(input.hidden) * real(input.vocab);
    terms.head_and_loss =
        2 * B * hidden_numbers(input) / sequence_cut(input) + std::max(4.0, B) * logits / t;
  }
  return terms;
}

bool fits(const MemoryTerms& terms, double gpu_memory_bytes) {
  return total_bytes(terms) <= safe_share * gpu_memory_bytes;
}

}  // namespace slipway
