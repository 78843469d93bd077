#include "scenarios/commands/kineto/kernel_uses.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>

namespace slipway::scenarios {
namespace {

struct ProductOperator {
  std::string_view name;
  std::size_t left, right;
};
constexpr std::array products{ProductOperator{"aten::mm", 0, 1}, ProductOperator{"aten::addmm", 1, 2},
                              ProductOperator{"aten::_scaled_mm", 0, 1}, ProductOperator{"aten::bmm", 0, 1},
                              ProductOperator{"aten::baddbmm", 1, 2}};

struct AttentionOperator {
  std::string_view name;
  std::size_t query, causal;  // positions of arguments; the key follows the query
  bool heads_first, backward;
  std::string_view is_causal = "True";
};
// The outer of two nested ones counts.
constexpr std::array attentions{
    AttentionOperator{"aten::_scaled_dot_product_flash_attention", 0, 4, true, false},
    AttentionOperator{"aten::_scaled_dot_product_cudnn_attention", 0, 6, true, false},
    AttentionOperator{"aten::_scaled_dot_product_efficient_attention", 0, 6, true, false},
    AttentionOperator{"aten::_flash_attention_forward", 0, 8, false, false},
    AttentionOperator{"aten::_efficient_attention_forward", 0, 9, false, false, "1"},
    AttentionOperator{"flash_attn::_flash_attn_forward", 0, 5, false, false},
    AttentionOperator{"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, true},
    AttentionOperator{"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true, true},
    AttentionOperator{"aten::_scaled_dot_product_efficient_attention_backward", 1, 11, true, true},
    AttentionOperator{"aten::_flash_attention_backward", 1, 11, false, true},
    AttentionOperator{"flash_attn::_flash_attn_backward", 1, 11, false, true}};

// Those that read each argument once and write one result. `copies`: into the first argument.
struct ElementOperator {
  std::string_view name;
  bool copies = false;
};
constexpr std::array element_wise{
    ElementOperator{"aten::add"},        ElementOperator{"aten::add_"},          ElementOperator{"aten::sub"},
    ElementOperator{"aten::mul"},        ElementOperator{"aten::mul_"},          ElementOperator{"aten::div"},
    ElementOperator{"aten::div_"},       ElementOperator{"aten::neg"},           ElementOperator{"aten::pow"},
    ElementOperator{"aten::rsqrt"},      ElementOperator{"aten::silu"},          ElementOperator{"aten::gelu"},
    ElementOperator{"aten::relu"},       ElementOperator{"aten::sigmoid"},       ElementOperator{"aten::tanh"},
    ElementOperator{"aten::exp"},        ElementOperator{"aten::silu_backward"}, ElementOperator{"aten::gelu_backward"},
    ElementOperator{"aten::copy_", true}};

constexpr std::array updates{std::string_view("aten::_fused_adamw_"), std::string_view("aten::_fused_adam_")};

template <typename Table>
auto found_in(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.name == name; });
}

UseKind kind_named(std::string_view name) {
  if (found_in(products, name) != products.end()) return UseKind::product;
  if (found_in(attentions, name) != attentions.end()) return UseKind::attention;
  if (found_in(element_wise, name) != element_wise.end()) return UseKind::element_wise;
  if (std::find(updates.begin(), updates.end(), name) != updates.end()) return UseKind::optimizer;
  return UseKind::other;
}

struct ElementType {
  std::string_view name;
  int bytes;
  std::optional<Dtype> dtype;
};
// As operators name them, and as collectives do.
constexpr std::array element_types{ElementType{"c10::BFloat16", 2, Dtype::bfloat16},
                                   ElementType{"BFloat16", 2, Dtype::bfloat16},
                                   ElementType{"c10::Half", 2, Dtype::float16},
                                   ElementType{"Half", 2, Dtype::float16},
                                   ElementType{"float", 4, Dtype::float32},
                                   ElementType{"Float", 4, Dtype::float32},
                                   ElementType{"double", 8, Dtype::float64},
                                   ElementType{"Double", 8, Dtype::float64},
                                   ElementType{"long int", 8, std::nullopt},
                                   ElementType{"long", 8, std::nullopt},
                                   ElementType{"Long", 8, std::nullopt},
                                   ElementType{"int", 4, std::nullopt},
                                   ElementType{"Int", 4, std::nullopt},
                                   ElementType{"bool", 1, std::nullopt},
                                   ElementType{"Bool", 1, std::nullopt},
                                   ElementType{"unsigned char", 1, std::nullopt},
                                   ElementType{"signed char", 1, std::nullopt},
                                   ElementType{"Byte", 1, std::nullopt},
                                   ElementType{"Char", 1, std::nullopt},
                                   ElementType{"Float8_e4m3fn", 1, std::nullopt},
                                   ElementType{"Float8_e5m2", 1, std::nullopt}};

const ElementType* type_named(std::string_view name) {
  const auto found = found_in(element_types, name);
  return found == element_types.end() ? nullptr : &*found;
}

std::span<const KinetoArgument> arguments_of(const KinetoTrace& trace, const KernelUse& use) {
  const std::int32_t index = use.op == nothing ? nothing : trace.operators[use.op].arguments;
  if (index == nothing) return {};
  return trace.arguments[index];
}

double elements_of(const KinetoArgument& argument) {
  double elements = 1;
  for (const std::int64_t size : argument.dims) elements *= static_cast<double>(size);
  return elements;
}

constexpr const char* no_shapes = "no shapes recorded";

// The operator that a kernel's time belongs to: the nearest known one around its launch; of nested attention the outer.
struct Owner {
  std::int32_t op = nothing;
  UseKind kind = UseKind::other;
};
Owner owner_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  Owner owner{kernel.launched_by, UseKind::other};
  for (std::int32_t at = kernel.launched_by; at != nothing; at = trace.operators[at].parent) {
    const UseKind kind = kind_named(trace.name_of(trace.operators[at]));
    if (kind == UseKind::other) continue;
    const bool is_outer = owner.kind == UseKind::attention && kind == UseKind::attention;
    if (owner.kind == UseKind::other || is_outer || kind == UseKind::attention) owner = {at, kind};
  }
  return owner;
}

struct Interval {
  double start, end;
};

// The times in which messages moved, merged.
std::vector<Interval> message_times(const KinetoTrace& trace) {
  std::vector<Interval> times;
  for (const KinetoKernel& kernel : trace.kernels) {
    if (!is_message(trace, kernel)) continue;
    if (!times.empty() && kernel.start_us <= times.back().end)
      times.back().end = std::max(times.back().end, kernel.end_us());
    else
      times.push_back({kernel.start_us, kernel.end_us()});
  }
  return times;
}

double shared_us(const std::vector<Interval>& times, const KinetoKernel& kernel) {
  auto at = std::upper_bound(times.begin(), times.end(), kernel.start_us,
                             [](double start, const Interval& interval) { return start < interval.end; });
  double shared = 0;
  for (; at != times.end() && at->start < kernel.end_us(); ++at)
    shared += std::min(at->end, kernel.end_us()) - std::max(at->start, kernel.start_us);
  return shared;
}

bool says_tf32(std::string_view kernel) {
  return kernel.find("tf32") != std::string_view::npos || kernel.find("s1688") != std::string_view::npos;
}

// Group and order of PyTorch's names.
constexpr std::array message_names{std::pair{std::string_view("allreduce"), Collective::all_reduce},
                                   std::pair{std::string_view("all_reduce"), Collective::all_reduce},
                                   std::pair{std::string_view("allgather"), Collective::all_gather},
                                   std::pair{std::string_view("all_gather"), Collective::all_gather},
                                   std::pair{std::string_view("reduce_scatter"), Collective::reduce_scatter},
                                   std::pair{std::string_view("all_to_all"), Collective::all_to_all},
                                   std::pair{std::string_view("alltoall"), Collective::all_to_all},
                                   std::pair{std::string_view("send"), Collective::send},
                                   std::pair{std::string_view("recv"), Collective::send},
                                   std::pair{std::string_view("broadcast"), Collective::broadcast}};

}  // namespace

bool is_message(const KinetoTrace& trace, const KinetoKernel& kernel) {
  if (kernel.is_copy) return false;
  if (kernel.message != nothing) return true;
  const std::string& name = trace.name_of(kernel);
  return name.find("nccl") != std::string::npos || name.find("rccl") != std::string::npos ||
         name.find("all_reduce_kernel") != std::string::npos;
}

std::vector<KernelUse> kernel_uses(const KinetoTrace& trace) {
  const std::vector<Interval> messages = message_times(trace);
  std::vector<KernelUse> uses;
  std::unordered_map<std::int32_t, std::size_t> of_operator;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const KinetoKernel& kernel = trace.kernels[i];
    Owner owner = owner_of(trace, kernel);
    // Within the GPU's memory a copy is what an element-wise kernel is.
    const bool is_inside = trace.name_of(kernel).find("DtoD") != std::string::npos;
    if (kernel.is_copy && !(is_inside && owner.kind == UseKind::element_wise)) owner.kind = UseKind::copy;
    const bool moves = is_message(trace, kernel);
    if (moves) owner.kind = UseKind::message;
    const bool is_own = owner.kind == UseKind::message || owner.kind == UseKind::copy || owner.op == nothing;
    std::size_t at = uses.size();
    if (!is_own) at = of_operator.try_emplace(owner.op, uses.size()).first->second;
    if (at == uses.size()) uses.push_back({owner.kind, owner.op, static_cast<std::int32_t>(i)});
    KernelUse& use = uses[at];
    ++use.kernels;
    use.seconds += 1e-6 * kernel.duration_us;
    if (!moves) use.beside_s += 1e-6 * shared_us(messages, kernel);
    use.is_tf32 |= says_tf32(trace.name_of(kernel));
  }
  return uses;
}

std::string name_of(const KinetoTrace& trace, const KernelUse& use) {
  const KinetoKernel& kernel = trace.kernels[use.first];
  if (use.kind == UseKind::message && kernel.message != nothing)
    return "message " + trace.messages[kernel.message].collective;
  if (use.op != nothing && use.kind != UseKind::copy && use.kind != UseKind::message)
    return trace.name_of(trace.operators[use.op]);
  std::string name = trace.name_of(kernel);
  if (name.starts_with("void ")) name.erase(0, 5);
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  if (const auto at = name.find(unnamed); at != std::string::npos) name.erase(at, unnamed.size());
  constexpr std::size_t longest = 60;
  name = name.substr(0, name.find_first_of("<("));
  if (name.ends_with(' ')) name.pop_back();
  return name.size() <= longest ? name : name.substr(0, longest) + "...";
}

Seen<ProductShape> product_of(const KinetoTrace& trace, const KernelUse& use) {
  const auto arguments = arguments_of(trace, use);
  const auto op = found_in(products, name_of(trace, use));
  if (arguments.size() <= op->right) return {{}, no_shapes};
  const auto &left = arguments[op->left], &right = arguments[op->right];
  if (left.dims.size() == 3) return {{}, "a batch of products"};
  if (left.dims.size() != 2 || right.dims.size() != 2 || left.dims[1] != right.dims[0])
    return {{}, "operands are no two matrices"};
  const ElementType* type = type_named(left.type);
  if (type == nullptr || !type->dtype || left.type != right.type) return {{}, "format " + left.type};
  const Dtype dtype = use.is_tf32 && *type->dtype == Dtype::float32 ? Dtype::tf32 : *type->dtype;
  ProductShape shape{static_cast<double>(left.dims[0]), static_cast<double>(right.dims[1]),
                     static_cast<double>(left.dims[1]), dtype};
  if (!(shape.m * shape.n * shape.k > 0)) return {{}, "an empty operand"};
  return {shape, ""};
}

Seen<AttentionCall> attention_of(const KinetoTrace& trace, const KernelUse& use) {
  const auto arguments = arguments_of(trace, use);
  const auto op = found_in(attentions, name_of(trace, use));
  if (arguments.size() <= op->causal) return {{}, no_shapes};
  const auto &query = arguments[op->query], &key = arguments[op->query + 1];
  if (query.dims.size() != 4 || key.dims.size() != 4) return {{}, "packed sequences"};
  const std::size_t heads = op->heads_first ? 1 : 2, tokens = op->heads_first ? 2 : 1;
  if (query.dims[tokens] != key.dims[tokens]) return {{}, "queries and keys of unequal number"};
  if (arguments[op->causal].value != op->is_causal) return {{}, "not causal"};
  const ElementType* type = type_named(query.type);
  if (type == nullptr || !type->dtype) return {{}, "format " + query.type};
  return {AttentionCall{static_cast<double>(query.dims[0]), static_cast<double>(query.dims[heads]),
                        static_cast<double>(query.dims[tokens]), static_cast<double>(query.dims[3]), op->backward,
                        *type->dtype},
          ""};
}

Seen<Traffic> traffic_of(const KinetoTrace& trace, const KernelUse& use) {
  const auto arguments = arguments_of(trace, use);
  const auto op = found_in(element_wise, name_of(trace, use));
  if (arguments.empty()) return {{}, no_shapes};
  if (use.kernels != 1) return {{}, "several kernels"};
  // The result has the sizes of the broadcast arguments, and the first one's format.
  std::vector<std::int64_t> result;
  double read = 0;
  for (const KinetoArgument& argument : arguments) {
    if (argument.dims.empty()) continue;
    const ElementType* type = type_named(argument.type);
    if (type == nullptr) return {{}, "format " + argument.type};
    read += type->bytes * elements_of(argument);
    if (result.size() < argument.dims.size()) result.insert(result.begin(), argument.dims.size() - result.size(), 1);
    for (std::size_t i = 0; i < argument.dims.size(); ++i) {
      std::int64_t& size = result[result.size() - argument.dims.size() + i];
      size = std::max(size, argument.dims[i]);
    }
  }
  const ElementType* type = type_named(arguments[0].type);
  if (result.empty() || type == nullptr || !type->dtype) return {{}, "no tensor of floating-point numbers first"};
  double written = op->copies ? 0 : type->bytes;
  for (const std::int64_t size : result) written *= static_cast<double>(size);
  return {Traffic{read + written, *type->dtype}, ""};
}

Seen<Updated> update_of(const KinetoTrace& trace, const KernelUse& use) {
  const auto arguments = arguments_of(trace, use);
  if (arguments.empty() || !(arguments[0].list_elements > 0)) return {{}, "sizes of the list not recorded"};
  // The format of a list's tensors is not recorded; optimizers keep float32.
  return {Updated{arguments[0].list_elements, Dtype::float32}, ""};
}

Seen<MessageCall> message_of(const KinetoTrace& trace, const KernelUse& use) {
  const std::int32_t index = trace.kernels[use.first].message;
  if (index == nothing || trace.messages[index].members == 0)
    return {{}, "size and group not recorded (PyTorch 2.2 and later do)"};
  const KinetoMessage& message = trace.messages[index];
  const auto name = message.collective.starts_with("_") ? message.collective.substr(1) : message.collective;
  const auto found = std::find_if(message_names.begin(), message_names.end(),
                                  [&](const auto& each) { return name.starts_with(each.first); });
  if (found == message_names.end()) return {{}, "collective " + message.collective};
  const ElementType* type = type_named(message.dtype);
  if (type == nullptr) return {{}, "format " + message.dtype};
  if (message.members < 2) return {{}, "a group of one"};
  // The whole gathered tensor is what a rank gets; else it is what a rank gives.
  const double elements = found->second == Collective::all_gather ? message.out_elements
                          : message.in_elements > 0               ? message.in_elements
                                                                  : message.out_elements;
  if (!(elements > 0)) return {{}, "an empty message"};
  const int members = found->second == Collective::send ? 2 : message.members;
  return {MessageCall{found->second, type->bytes * elements, members}, ""};
}

}  // namespace slipway::scenarios
