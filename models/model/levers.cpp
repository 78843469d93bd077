#include "models/model/levers.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/model/operator_cost.h"
#include "models/model/operators.h"
#include "models/model/parameters.h"

namespace slipway::models {

namespace {

using Operators = std::span<Operator>;

double real(std::int64_t value) { return static_cast<double>(value); }

bool is_product(const Operator& op) {
  return op.kind != OpKind::communicate && op.m > 0 && !is_attention(op.kind) && op.kind != OpKind::norm;
}
bool is_shared(const Operator& op) {
  return ((op.kind == OpKind::communicate ? op.wire : op.writes) & wire_shared) != 0;
}
std::string_view part_of(const Operator& op) { return op.part; }

// Bytes of one kept number of a product's input.
double kept_number(const Operator& op) { return op.narrow ? input_bytes(*op.narrow) : bytes_of(op.dtype); }

// The operators [first, last) behind the add of attention: a layer's second half.
Operators second_half(Operators operators) {
  const auto add =
      std::find_if(operators.begin(), operators.end(), [](const Operator& op) { return part_of(op) == "add1"; });
  if (add == operators.end()) return {};
  return operators.subspan(static_cast<std::size_t>(add - operators.begin()) + 1);
}
// Empty where the block has no layer.
Operators first_half(Operators operators) {
  const std::size_t rest = second_half(operators).size();
  return rest > 0 ? operators.first(operators.size() - rest) : Operators();
}

// LoRA: y = x·Wᵀ + (x·Aᵀ)·Bᵀ with W frozen. A and B are so narrow that memory bounds their products: forward x is read
// and x·Aᵀ written, that read and the result written, and both results added (2 read, 1 written). Backward the output's
// gradient is read for that of B and for that of x·Aᵀ, x for that of A; x's gradient is written and added to the other.

class Adapters {
 public:
  Adapters(const Block& block, const WorkShape& shape) : block_(block), shape_(shape), tokens_(tokens_of(shape)) {}

  void apply(Operator& op) const {
    if (op.kind == OpKind::embed || op.kind == OpKind::add_positions) op.backward_bytes = 0;
    if (!is_product(op)) return;
    op.weight_grad_flops = 0;
    op.backward_bytes /= 2;  // of both gradients
    if (has_adapter(op))
      add(op);
    else
      op.saved_bytes -= std::min(op.saved_bytes, input_bytes_of(op));
  }

 private:
  bool has_adapter(const Operator& op) const {
    const auto& modules = shape_.levers.lora.modules;
    switch (op.kind) {
      case OpKind::qkv:
        return modules.has(LoraModule::qkv);
      case OpKind::out_projection:
        return modules.has(LoraModule::out);
      case OpKind::up:
        return modules.has(LoraModule::up);
      case OpKind::down:
        return modules.has(LoraModule::down);
      default:
        return false;
    }
  }
  double input_bytes_of(const Operator& op) const {
    const double sharded = real(tokens_.sharded * block_.hidden), all = real(op.m) * real(op.k);
    const bool is_cut = op.kind != OpKind::out_projection && op.kind != OpKind::down && op.experts == 0;
    return kept_number(op) * (is_cut ? std::min(sharded, all) : all);
  }
  void add(Operator& op) const {
    const double B = bytes_of(op.dtype), rank = shape_.levers.lora.rank;
    const double input = real(op.m) * real(op.k), output = real(op.m) * real(op.n), narrow = real(op.m) * rank;
    op.elementwise_forward_bytes += B * (input + 2 * narrow + 4 * output);
    op.elementwise_backward_bytes += B * (2 * output + 4 * narrow + 5 * input);
    op.saved_bytes += B * narrow;
    op.kernels += 3;
    op.more_backward_kernels += 2;
  }

  const Block& block_;
  const WorkShape& shape_;
  Tokens tokens_;
};

// Recomputed modules.

void run_again(Operator& op) {
  if (op.again) return;
  op.again = true;
  op.again_bytes += op.saved_bytes;
  op.saved_bytes = 0;
}

void keep(Operator& op, double bytes) {
  const double kept = std::min(bytes, op.again_bytes);
  op.again_bytes -= kept;
  op.saved_bytes += kept;
}

// Runs the operators again, and keeps the input of the first product.
void checkpoint(Operators operators, double input) {
  bool begun = false, kept = false;
  for (Operator& op : operators) {
    run_again(op);
    if (op.kind == OpKind::communicate) continue;
    op.begins_checkpoint = !std::exchange(begun, true);
    if (is_product(op) && !std::exchange(kept, true))
      keep(op, input * (op.kind == OpKind::route ? bytes_of(op.dtype) : kept_number(op)));
  }
}

// The input of a product is not kept, because the module that makes it comes again. Its narrow copy is cast once more.
void drop_input(Operator& op, double numbers) {
  const double each = op.kind == OpKind::route ? bytes_of(op.dtype) : kept_number(op);
  const double dropped = std::min(op.saved_bytes, each * numbers);
  op.saved_bytes -= dropped;
  op.again_bytes += dropped;
  if (op.narrow && !op.again)
    op.elementwise_backward_bytes += (bytes_of(op.dtype) + input_bytes(*op.narrow)) * real(op.m) * real(op.k);
}

class Recomputation {
 public:
  Recomputation(Operators operators, const Block& block, const WorkShape& shape)
      : operators_(operators), block_(block), shape_(shape), hidden_(real(tokens_of(shape).sharded * block.hidden)) {}

  void run() {
    const SetOf<RecomputedModule>& modules = shape_.levers.recomputed;
    const bool experts = block_.experts > 0;
    if (modules.has(RecomputedModule::moe) && experts) whole_half();
    if (modules.has(RecomputedModule::mlp) && !experts) whole_half();
    if (modules.has(RecomputedModule::shared_experts) && experts) shared_experts();
    if (modules.has(RecomputedModule::moe_act) && experts) activations();
    if (modules.has(RecomputedModule::core_attn)) core_attention();
    if (modules.has(RecomputedModule::mla_up_proj)) up_projections();
    if (modules.has(RecomputedModule::layernorm)) norms();
  }

 private:
  // Between the norm and the add of the second half.
  void whole_half() {
    Operators half = second_half(operators_);
    if (half.size() < 2) return;
    half = half.subspan(1);
    const auto add = std::find_if(half.begin(), half.end(), [](const Operator& op) { return op.kind == OpKind::add; });
    checkpoint(half.first(static_cast<std::size_t>(add - half.begin())), hidden_);
  }

  void shared_experts() {
    const auto belongs = [](const Operator& op) { return is_shared(op) && op.kind != OpKind::share; };
    const auto first = std::find_if(operators_.begin(), operators_.end(), belongs);
    const auto last = std::find_if_not(first, operators_.end(), belongs);
    checkpoint({first, last}, hidden_);
  }

  void activations() {
    for (std::size_t i = 0; i + 1 < operators_.size(); ++i) {
      Operator& op = operators_[i];
      if (op.kind != OpKind::activation || is_shared(op) || op.again) continue;
      const double column = real(operators_[i + 1].m) * real(operators_[i + 1].k) * bytes_of(op.dtype);
      op.again = op.begins_checkpoint = true;
      const double inputs = std::min(op.saved_bytes, (op.saved_bytes > column ? 2 : 1) * column);
      op.again_bytes += op.saved_bytes - inputs;
      op.saved_bytes = inputs;
      drop_input(operators_[i + 1], real(operators_[i + 1].m) * real(operators_[i + 1].k));
    }
  }

  // Its inputs q, k and v stay, and its output as the next product's input. Kernels that write scores make them again in
  // their own backward pass (operator_cost_attention.cpp).
  void core_attention() {
    if (writes_scores(shape_.kernels)) return;
    bool first = true;
    for (Operator& op : operators_) {
      if (!is_attention(op.kind)) continue;
      op.again = true;
      op.begins_checkpoint = std::exchange(first, false);
      const double output = output_bytes(op);
      op.saved_bytes -= output;
      op.again_bytes += output;
    }
  }

  // Bytes of its output that attention keeps, where the projection after it keeps a narrow copy.
  double output_bytes(const Operator& op) const {
    if (shape_.narrow == NarrowRecipe::none || (op.kind == OpKind::ring_attention && op.round > 0)) return 0;
    return std::min(op.saved_bytes,
                    bytes_of(op.dtype) * real(op.m) * real(block_.heads / shape_.sharding.tensor * value_dim(block_)));
  }

  void up_projections() {
    bool first = true, any = false;
    for (Operator& op : operators_) {
      if (part_of(op) == "q_up" || part_of(op) == "kv_up") {
        op.again = any = true;
        op.begins_checkpoint = std::exchange(first, false);
      }
      if (!any || !is_attention(op.kind)) continue;
      const double output = output_bytes(op);  // attention itself does not run again
      op.again_bytes += op.saved_bytes - output;
      op.saved_bytes = output;
    }
  }

  void norms() {
    const Operator* norm = nullptr;
    for (Operator& op : operators_) {
      const bool of_layer = part_of(op) == "norm1" || part_of(op) == "norm2";
      if (of_layer && (op.writes & wire_residual) == 0) {
        if (!op.again) {
          const double input = std::min(op.saved_bytes, bytes_of(op.dtype) * hidden_);
          op.again_bytes += op.saved_bytes - input;
          op.saved_bytes = input;
        }
        op.again = op.begins_checkpoint = true;
        norm = &op;
        continue;
      }
      if (norm == nullptr || !is_product(op)) continue;
      drop_input(op, hidden_);
      norm = nullptr;
    }
  }

  Operators operators_;
  const Block& block_;
  const WorkShape& shape_;
  double hidden_;  // numbers of a layer's input
};

// Offloaded inputs.

void offload(Operator& op, double bytes) {
  const double moved = std::min(op.saved_bytes, bytes);
  op.saved_bytes -= moved;
  op.offloaded_bytes += moved;
}

void offload(Operators operators, const SetOf<OffloadedInput>& inputs) {
  const auto when = [&](OffloadedInput input, Operator& op) {
    if (inputs.has(input)) offload(op, op.saved_bytes);
  };
  for (std::size_t i = 0; i < operators.size(); ++i) {
    Operator& op = operators[i];
    if (part_of(op) == "norm1") when(OffloadedInput::attn_norm, op);
    if (part_of(op) == "norm2") when(OffloadedInput::mlp_norm, op);
    if (op.kind == OpKind::qkv || op.kind == OpKind::compress) when(OffloadedInput::qkv_linear, op);
    if (is_attention(op.kind)) when(OffloadedInput::core_attn, op);
    if (op.kind == OpKind::out_projection) when(OffloadedInput::attn_proj, op);
    if (op.kind == OpKind::up && op.experts > 0) when(OffloadedInput::expert_fc1, op);
    // Its input is gate and up; silu(gate) stays.
    const bool of_experts = op.kind == OpKind::activation && i > 0 && operators[i - 1].experts > 0;
    if (of_experts && inputs.has(OffloadedInput::moe_act))
      offload(op, bytes_of(op.dtype) * real(operators[i - 1].m) * real(operators[i - 1].n));
  }
}

// CUDA graphs.

void capture(Operators operators) {
  bool first = true;
  for (Operator& op : operators) {
    op.in_graph = 1;
    if (op.kind != OpKind::communicate) op.begins_graph = std::exchange(first, false);
  }
}

// A router has 13 kernels (operator_cost_experts.cpp, set_route): five of the router's, seven that sort, and the copy of rows.
void capture_router(Operators half, bool sorts) {
  constexpr double of_router = 5.0 / 13, and_sorting = 12.0 / 13;
  bool first = true;
  for (Operator& op : half) {
    if (op.kind == OpKind::route)
      op.in_graph = sorts ? and_sorting : of_router;
    else if (op.kind == OpKind::norm || op.kind == OpKind::fork || is_shared(op))
      op.in_graph = 1;
    if (op.in_graph > 0 && op.kind != OpKind::communicate && first) op.begins_graph = true, first = false;
  }
}

void capture(Operators operators, const Block& block, const SetOf<GraphScope>& scopes) {
  if (scopes.has(GraphScope::attn)) capture(first_half(operators));
  const Operators half = second_half(operators);
  if (scopes.has(block.experts > 0 ? GraphScope::moe : GraphScope::mlp)) return capture(half);
  if (block.experts > 0 && scopes.has(GraphScope::moe_router))
    capture_router(half, scopes.has(GraphScope::moe_preprocess));
}

}  // namespace

bool has_module(const Block& block, RecomputedModule module) {
  switch (module) {
    case RecomputedModule::mlp:
      return block.experts == 0;
    case RecomputedModule::moe:
    case RecomputedModule::moe_act:
      return block.experts > 0;
    case RecomputedModule::shared_experts:
      return block.shared_ffn > 0;
    case RecomputedModule::layernorm:
      return !block.post_norm;
    case RecomputedModule::mla_up_proj:
      return is_latent(block);
    case RecomputedModule::core_attn:
      break;
  }
  return true;
}

void apply_levers(std::span<Operator> operators, const Block& block, const WorkShape& shape) {
  const Levers& levers = shape.levers;
  if (levers.lora.rank > 0) {
    const Adapters adapters(block, shape);
    for (Operator& op : operators) adapters.apply(op);
  }
  if (!levers.recomputed.empty()) Recomputation(operators, block, shape).run();
  if (!levers.offloaded.empty()) offload(operators, levers.offloaded);
  const int layer = operators.empty() ? 0 : operators.front().block;  // from 1 on; the embedding is block 0
  if (block.kind == BlockKind::transformer && layer <= levers.offloaded_layers)
    for (Operator& op : operators) offload(op, op.saved_bytes);
  if (!levers.graphs.empty()) capture(operators, block, levers.graphs);
}

void add_adapters(BlockElements& elements, const Block& block, const Sharding& sharding, const Lora& lora) {
  if (lora.rank == 0) return;
  elements.frozen = elements.dense, elements.frozen_experts = elements.experts;
  if (block.kind != BlockKind::transformer) return;
  WorkShape shape{.micro_batch = 1,
                  .sequence = static_cast<std::int64_t>(sharding.context) * sharding.tensor * 2,
                  .sharding = sharding};
  // Widths of a rank's Linears.
  Model model;
  model.sequence = shape.sequence;
  model.runs = {{block, 1}};
  for (const Operator& op : operators_of(model, 0, 1, shape)) {
    const bool wanted = (op.kind == OpKind::qkv && lora.modules.has(LoraModule::qkv)) ||
                        (op.kind == OpKind::out_projection && lora.modules.has(LoraModule::out)) ||
                        (op.kind == OpKind::up && lora.modules.has(LoraModule::up)) ||
                        (op.kind == OpKind::down && lora.modules.has(LoraModule::down));
    if (!wanted) continue;
    const bool of_experts = op.experts > 0;
    const int tensor = of_experts ? expert_tensor_of(sharding) : sharding.tensor;
    const bool column = op.kind == OpKind::qkv || op.kind == OpKind::up;
    // The whole side of a rank's matrix divides its adapter's other side.
    const std::int64_t inputs = column ? op.k / tensor : op.k, outputs = column ? op.n : op.n / tensor;
    const std::int64_t numbers = lora.rank * (inputs + outputs) * std::max(1, op.experts);
    (of_experts && dispatches(sharding) ? elements.experts : elements.dense) += numbers;
  }
}

}  // namespace slipway::models
