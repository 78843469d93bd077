#include "models/memory/memory_parts.h"

#include <algorithm>

#include "models/model/operator_cost.h"

namespace slipway::models {
namespace {

struct PartName {
  const char* key;
  const char* words;
};
constexpr std::array<PartName, memory_parts> names{{
    {"weights", "weights"},
    {"gradients", "gradients"},
    {"optimizer", "optimizer"},
    {"norms", "norm inputs"},
    {"norm_copies", "norms, fp32 copies"},
    {"projection_inputs", "inputs of qkv and mlp"},
    {"attention", "attention (q, k, v, output)"},
    {"scores", "attention scores"},
    {"mlp", "mlp"},
    {"layer_inputs", "inputs of recomputed layers"},
    {"embedding_input", "embedding input"},
    {"head", "final norm and head input"},
    {"logits", "logits and loss"},
    {"messages", "messages and temporaries"},
    {"gathered_weights", "gathered weights (ZeRO 3)"},
    {"gradient_buckets", "unreduced gradients (ZeRO 2, 3)"},
    {"kept_for_bubble_work", "kept for bubble work"},
    {"update", "buffers of the update"},
    {"tables", "tables, lasting buffers"},
    {"library", "context, libraries"},
    {"fragmentation", "fragmentation"},
}};

// q, k, v of this rank and the output: what every attention kernel keeps; the rest are scores.
double attention_bytes(const Operator& op, const Block& block, const WorkShape& shape) {
  const std::int64_t heads = block.heads / shape.sharding.tensor,
                     kv_heads = kv_heads_of_rank(block, shape.sharding.tensor),
                     outputs = shape.narrow == NarrowRecipe::none ? 0 : heads;
  const auto columns =
      static_cast<double>((heads + kv_heads) * block.head_dim + (kv_heads + outputs) * value_dim(block));
  return bytes_of(op.dtype) * static_cast<double>(tokens_of(shape).whole) * columns;
}

// The projection's input; behind it, where heads have norms, their inputs and copies.
void add_kept_of_qkv(const Operator& op, const Block& block, const WorkShape& shape, MemoryParts& parts) {
  const Tokens tokens = tokens_of(shape);
  const double B = bytes_of(op.dtype);
  const double input = std::min(op.saved_bytes, B * static_cast<double>(tokens.sharded * block.hidden));
  const int tensor = shape.sharding.tensor;
  const double queries_keys =
      static_cast<double>(tokens.whole * (block.heads / tensor + kv_heads_of_rank(block, tensor)) * block.head_dim);
  const double normed = std::min(op.saved_bytes - input, B * queries_keys);
  parts[MemoryPart::projection_inputs] += input;
  parts[MemoryPart::norms] += normed;
  parts[MemoryPart::norm_copies] += op.saved_bytes - input - normed;
}

// The input of the layer's MLP, and what belongs to the rows that go through experts.
void add_kept_of_route(const Operator& op, const Block& block, const WorkShape& shape, MemoryParts& parts) {
  const double input = bytes_of(op.dtype) * static_cast<double>(tokens_of(shape).sharded * block.hidden);
  parts[MemoryPart::projection_inputs] += input;
  parts[MemoryPart::mlp] += op.saved_bytes - input;
}

// silu(gate): one of the three tensors that a gated activation keeps.
double gate_bytes(const Operator& op, const Block& block) {
  if (op.kind != OpKind::activation || !is_gated(block.mlp)) return 0;
  return (op.saved_bytes + op.again_bytes + op.offloaded_bytes) / 3;
}
// Gate and up are what is offloaded first (levers.h: moe_act), and what is made again last.
bool offloads_gate(const Operator& op, double gate) { return op.offloaded_bytes > 2.5 * gate; }

double bytes_of_input(const Operator& op) {
  return bytes_of(op.dtype) * static_cast<double>(op.m) * static_cast<double>(op.k);
}
double bytes_of_output(const Operator& op) {
  return bytes_of(op.dtype) * static_cast<double>(op.m) * static_cast<double>(op.n);
}

// Visits each product with what stays of its input and of its output's gradient.
template <typename Visit>
void over_weight_grads(std::span<const Operator> operators, bool first_input_comes_again, Visit visit) {
  for (const Operator& op : operators) {
    if (op.weight_grad_flops <= 0) continue;
    const bool comes_again = first_input_comes_again && &op == &operators.front();
    visit(op, comes_again ? 0 : bytes_of_input(op), bytes_of_output(op));
  }
}

MemoryPart part_of(OpKind kind) {
  switch (kind) {
    case OpKind::embed:
    case OpKind::add_positions:
      return MemoryPart::embedding_input;
    case OpKind::qkv:
    case OpKind::compress:
    case OpKind::expand:
    case OpKind::up:
    case OpKind::project:
      return MemoryPart::projection_inputs;
    case OpKind::attention:
    case OpKind::ring_attention:
    case OpKind::out_projection:
      return MemoryPart::attention;
    case OpKind::route:
    case OpKind::activation:
    case OpKind::down:
    case OpKind::combine:
      return MemoryPart::mlp;
    case OpKind::head_transform:
    case OpKind::logits:
      return MemoryPart::head;
    case OpKind::loss:
      return MemoryPart::logits;
    case OpKind::norm:
    case OpKind::fork:
    case OpKind::share:
    case OpKind::join:
    case OpKind::add:
    case OpKind::communicate:
      break;
  }
  return MemoryPart::norms;
}

}  // namespace

const char* name_of(MemoryPart part) { return names[static_cast<std::size_t>(part)].key; }
const char* words_for(MemoryPart part) { return names[static_cast<std::size_t>(part)].words; }

MemoryParts& MemoryParts::operator+=(const MemoryParts& other) {
  for (std::size_t i = 0; i < memory_parts; ++i) bytes_[i] += other.bytes_[i];
  return *this;
}

MemoryParts operator*(double factor, MemoryParts parts) {
  for (double& bytes : parts.bytes_) bytes *= factor;
  return parts;
}

double sum(const MemoryParts& parts) {
  double bytes = 0;
  for (std::size_t i = 0; i < memory_parts; ++i) bytes += parts[static_cast<MemoryPart>(i)];
  return bytes;
}

double activation_bytes(const MemoryParts& parts) {
  double bytes = 0;
  for (auto i = static_cast<std::size_t>(MemoryPart::norms); i <= static_cast<std::size_t>(MemoryPart::logits); ++i)
    bytes += parts[static_cast<MemoryPart>(i)];
  return bytes;
}

OptionalBytes& OptionalBytes::operator+=(const OptionalBytes& other) {
  gates += other.gates, expert_results += other.expert_results;
  return *this;
}

OptionalBytes operator*(double factor, OptionalBytes bytes) {
  return {factor * bytes.gates, factor * bytes.expert_results};
}

OptionalBytes optional_kept(const Operator& op, const Block& block) {
  if (op.kind == OpKind::combine) return {.expert_results = op.saved_bytes};
  const double gate = gate_bytes(op, block);
  return {.gates = op.again_bytes > 0 || offloads_gate(op, gate) ? 0 : gate};
}

OptionalBytes optional_at_work(const Operator& op, const Block& block, int copies) {
  if (op.kind == OpKind::combine) return {.expert_results = op.again_bytes + copies * op.offloaded_bytes};
  const double gate = gate_bytes(op, block);
  return {.gates = (op.again_bytes > 0 ? gate : 0) + (offloads_gate(op, gate) ? copies * gate : 0)};
}

double bytes_for_weight_grads(std::span<const Operator> operators, bool first_input_comes_again) {
  double bytes = 0;
  over_weight_grads(operators, first_input_comes_again,
                    [&](const Operator&, double input, double gradient) { bytes += input + gradient; });
  return bytes;
}

void add_kept_for_weights(std::span<const Operator> operators, bool first_input_comes_again, const Block& block,
                          MemoryParts& parts) {
  over_weight_grads(operators, first_input_comes_again, [&](const Operator& op, double input, double gradient) {
    const MemoryPart part = op.kind == OpKind::up && block.experts > 0 ? MemoryPart::mlp : part_of(op.kind);
    parts[part] += input;
    parts[op.kind == OpKind::logits ? MemoryPart::logits : part] += gradient;
  });
}

double bytes_beside_shard(const Operator& gather, const Block& block, const Sharding& sharding, bool recomputed) {
  if (gathers_input(gather)) {
    const double whole = gather.message_bytes * gather.forward_sent, shard = whole / sharding.tensor;
    return recomputed ? whole - shard : -shard;
  }
  const double own = gather.message_bytes / sharding.context;
  const std::int64_t kv_heads = kv_heads_of_rank(block, sharding.tensor);
  const double queries_to_keys_values = static_cast<double>(block.heads / sharding.tensor * block.head_dim) /
                                        static_cast<double>(kv_heads * (block.head_dim + value_dim(block)));
  return gather.message_bytes - own + (block.causal ? own * queries_to_keys_values : 0);
}

MemoryPart part_of_gathered(const Operator& gather, const Block& block) {
  if (gathers_keys_values(gather)) return MemoryPart::attention;
  return block.kind == BlockKind::head ? MemoryPart::head : MemoryPart::projection_inputs;
}

void add_kept(const Operator& op, const Block& block, const WorkShape& shape, MemoryParts& parts) {
  if (op.saved_bytes <= 0) return;
  if (op.kind == OpKind::attention) {
    const double own = std::min(op.saved_bytes, attention_bytes(op, block, shape));
    parts[MemoryPart::attention] += own;
    parts[MemoryPart::scores] += op.saved_bytes - own;
    return;
  }
  if (op.kind == OpKind::qkv) return add_kept_of_qkv(op, block, shape, parts);
  if (op.kind == OpKind::route) return add_kept_of_route(op, block, shape, parts);
  if (op.kind == OpKind::up && block.experts > 0) {
    parts[MemoryPart::mlp] += op.saved_bytes;
    return;
  }
  if (op.kind != OpKind::norm) {
    parts[part_of(op.kind)] += op.saved_bytes;
    return;
  }
  const double input =
      std::min(op.saved_bytes, bytes_of(op.dtype) * static_cast<double>(tokens_of(shape).sharded * block.hidden));
  parts[block.kind == BlockKind::head ? MemoryPart::head : MemoryPart::norms] += input;
  parts[block.kind == BlockKind::head ? MemoryPart::head : MemoryPart::norm_copies] += op.saved_bytes - input;
}

}  // namespace slipway::models
