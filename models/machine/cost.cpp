#include "models/machine/cost.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {
namespace {

double streaming_seconds(const Machine& machine, double bytes) {
  if (bytes <= 0) return 0;
  const double rate = machine.memory_bandwidth * machine.memory_efficiency;
  if (!(rate > 0))
    throw std::invalid_argument(
        "machine " + machine.name +
        " has no memory_bandwidth or no memory_efficiency; add them to its profile (`slipway calibrate` "
        "measures them)");
  return bytes / rate;
}

Format operand_format(const Operator& op) { return op.narrow.value_or(static_cast<Format>(op.dtype)); }

// Ranks on cores run the experts of a product one by one, each with its share of the rows (exec/operators/experts.cpp).
int products_of(const Machine& machine, const Operator& op) {
  return machine.cores > 0 && op.experts > 0 ? op.experts : 1;
}

double matrix_seconds(const Machine& machine, const Operator& op, double flops) {
  if (flops <= 0) return 0;
  const double peak = machine.peak_flops[static_cast<std::size_t>(computes_as(operand_format(op)))];
  if (!(peak > 0))
    throw std::invalid_argument(
        "machine " + machine.name + " has no peak_flops for " + name_of(operand_format(op)) +
        "; choose another dtype, or add the peak to its profile (`slipway calibrate` measures it)");
  const std::int64_t rows = std::max<std::int64_t>(1, op.m / products_of(machine, op));
  const double efficiency =
      is_attention(op.kind) ? machine.attention_efficiency : gemm_efficiency(machine, rows, op.n, op.k);
  if (!(efficiency > 0))
    throw std::invalid_argument("machine " + machine.name + " has an efficiency of 0 for " + name_of(op.kind));
  return flops / (peak * efficiency);
}

struct Load {
  double flops = 0, matrix_bytes = 0, elementwise_bytes = 0;
  int kernels = 0;
};

// A GEMM's two gradients share its backward bytes evenly: each reads or writes the same three matrices.
Load load_of(const Operator& op, Direction direction) {
  const bool has_weight = op.weight_grad_flops > 0;
  switch (direction) {
    case Direction::forward:
      return {op.forward_flops, op.forward_bytes, op.elementwise_forward_bytes, op.kernels};
    case Direction::input_grad:
      return {op.input_grad_flops, has_weight ? op.backward_bytes / 2 : op.backward_bytes,
              op.elementwise_backward_bytes, op.kernels};
    case Direction::weight_grad:
      if (!has_weight) return {};
      return {op.weight_grad_flops, op.backward_bytes / 2, 0, 1};
    case Direction::backward:
      break;  // two loads: see operator_seconds
  }
  return {};
}

// Machines with measured kernels.

constexpr double streaming_share = 0.85;  // of memory bandwidth, of element-wise kernels
constexpr double most_share = 0.95;       // of peak, of any kernel (kernels.h)

Rates rates_of(const Machine& machine, Format format) {
  const double peak = machine.peak_flops[static_cast<std::size_t>(computes_as(format))];
  if (!(peak > 0))
    throw std::invalid_argument("machine " + machine.name + " has no peak_flops for " + name_of(format) +
                                "; choose another dtype, or add the peak to its profile");
  return {peak, machine.memory_bandwidth};
}

// Formats without measured products: the shapes cost what they cost in FP8 where the format computes as that, else in
// bfloat16, at the format's peak.
const GemmConstants& gemm_of(const Machine& machine, Format format) {
  const auto& gemm = machine.kernels.gemm;
  for (const Format measured : {format, computes_as(format)})
    if (const auto& own = gemm[static_cast<std::size_t>(measured)]) return *own;
  return gemm[static_cast<std::size_t>(Format::bfloat16)].value();
}

// Casts are separate kernels in training (operator_cost.cpp), where inference libraries measured them as part of a
// narrow product. So one starts as soon after the kernel before it as a product in bfloat16.
double product_seconds(const Machine& machine, Format format, const GemmShape& shape) {
  GemmConstants constants = gemm_of(machine, format);
  if (format >= Format::fp8) constants.cast = 0, constants.launch = gemm_of(machine, Format::bfloat16).launch;
  const StepConstants& c = machine.constants;
  const double share = c.gemm * (machine.generation >= Generation::hopper ? c.gemm_hopper : 1);
  constants.share = std::min(most_share, constants.share * share);
  return seconds_of(constants, rates_of(machine, format), shape);
}

// Products of all experts of a rank in one kernel, which ends when the slower of two limits does:
//
//   the product of all rows, each expert's last tile half empty (a tile of 128 rows)
//   what grouped kernels were measured at (kernels.h), which covers experts of few rows, and weights that are only read
//
// `rows` stands where the rows do in `shape`: m, or k for the gradient of the weights.
double grouped_seconds(const Machine& machine, Format format, GemmShape shape, double GemmShape::*rows, int experts) {
  constexpr double half_a_tile = 64;
  const double before = shape.*rows;
  shape.*rows = before + half_a_tile * experts;
  const double plain = product_seconds(machine, format, shape);
  const auto& measured = machine.kernels.grouped_gemm[static_cast<std::size_t>(format)];
  if (!measured) return plain;
  const Rates rates = rates_of(machine, format);
  shape.*rows = before + measured->waste * experts;
  const double products = 2 * shape.m * shape.n * shape.k / (rates.flops * measured->share);
  const double bytes = shape.bytes / (rates.memory * measured->memory);
  return std::max(plain, gemm_of(machine, Format::bfloat16).launch + std::max(products, bytes));
}

double weighted_seconds(const Machine& machine, const Operator& op, const GemmShape& shape, double GemmShape::*rows) {
  return op.experts > 0 ? grouped_seconds(machine, operand_format(op), shape, rows, op.experts)
                        : product_seconds(machine, operand_format(op), shape);
}

// Bytes of an operator's element-wise kernels over their count (operator_cost.cpp), which has SwiGLU as two kernels and
// rotary as one. Norms and scores are counted kernel by kernel.
double traffic_factor(const Machine& machine, const Operator& op) {
  const bool eager = machine.trainer.eager;
  switch (op.kind) {
    case OpKind::norm:
    case OpKind::attention:
      return 1;
    case OpKind::activation:  // one kernel reads gate and up: 3 forward and 5 backward, of 5 and 9
      return eager ? machine.constants.eager_traffic : op.kernels > 1 ? 8.0 / 14 : 1;
    case OpKind::qkv:  // halves are turned, joined, multiplied by sine and cosine, and added
      return eager ? 2.5 : 1;
    default:
      return eager ? machine.constants.eager_traffic : 1;
  }
}

double traffic_seconds(const Machine& machine, const Operator& op, double bytes) {
  return bytes * machine.constants.traffic * traffic_factor(machine, op) / (machine.memory_bandwidth * streaming_share);
}

// A kernel that only moves data starts as soon after the one before it as a product does.
double gap_of(const Machine& machine) { return gemm_of(machine, Format::bfloat16).launch; }

double flash_share(const Machine& machine, Kernels asked) {
  const StepConstants& c = machine.constants;
  const bool new_ones = machine.generation >= Generation::hopper;
  const FlashKernel kernel = asked == Kernels::flash1 ? FlashKernel::flash1
                             : new_ones               ? machine.trainer.hopper
                                                      : machine.trainer.ampere;
  double share = c.attention;
  if (new_ones && kernel != FlashKernel::best) share *= c.flash2_hopper;
  constexpr double triton_over_flash1 =
      1.3;  // Dao 2023 (arXiv 2307.08691): flash 2 is 1.7 to 3 and 1.3 to 2.5 times as fast
  if (kernel == FlashKernel::flash1) share *= c.flash1;
  if (kernel == FlashKernel::triton) share *= std::min(1.0, triton_over_flash1 * c.flash1);
  return share;
}

double flash_seconds(const Machine& machine, const Operator& op, Direction direction) {
  const auto format = static_cast<Format>(op.dtype);
  const AttentionConstants* measured = attention_of(machine.kernels, format, op.k);
  if (measured == nullptr) measured = attention_of(machine.kernels, Format::bfloat16, op.k);
  if (measured == nullptr)
    throw std::invalid_argument("machine " + machine.name + " has no constants of flash attention; choose kernels: " +
                                "torch or fused_softmax, or add them to its profile's kernels");
  AttentionConstants constants = *measured;
  constants.share *= flash_share(machine, op.attention);
  AttentionShape shape{op.heads, 1, static_cast<double>(op.n), op.forward_flops, op.forward_bytes};
  if (direction != Direction::forward) {
    constants.share *= machine.constants.attention_backward;
    constants.launch *= 2;
    shape.flops = op.input_grad_flops, shape.bytes = op.backward_bytes;
  }
  constants.share = std::min(constants.share, most_share);
  return seconds_of(constants, rates_of(machine, format), shape);
}

double scores_seconds(const Machine& machine, const Operator& op, double flops, double bytes) {
  const Rates rates = rates_of(machine, static_cast<Format>(op.dtype));
  return std::max(flops / (rates.flops * std::min(most_share, machine.constants.scores)),
                  bytes / (rates.memory * streaming_share));
}

double real(std::int64_t value) { return static_cast<double>(value); }

// Dropout of scores reads and writes them, and a byte of mask, in each direction.
double dropout_seconds(const Machine& machine, const Operator& op) {
  if (!machine.trainer.dropout) return 0;
  const double scores = op.forward_flops / (2 * real(op.k + (op.v > 0 ? op.v : op.k)));
  return traffic_seconds(machine, op, scores * (2 * bytes_of(op.dtype) + 1));
}

bool is_product(const Operator& op) { return op.m > 0 && !is_attention(op.kind); }

// Products, attention and traffic of an operator in one direction that is not both gradients.
double kernel_seconds(const Machine& machine, const Operator& op, Direction direction) {
  const StepConstants& c = machine.constants;
  const bool forward = direction == Direction::forward;
  const double gap = gap_of(machine);
  if (is_product(op)) {
    const double m = real(op.m), n = real(op.n), k = real(op.k);
    const double bytes = op.weight_grad_flops > 0 ? op.backward_bytes / 2 : op.backward_bytes;
    if (direction == Direction::weight_grad && op.weight_grad_flops <= 0) return 0;  // frozen
    if (direction == Direction::weight_grad)
      return weighted_seconds(machine, op, {k, n, m, bytes}, &GemmShape::k) +
             machine.trainer.accumulate_bytes * c.accumulate_traffic * n * k * std::max(1, op.experts) /
                 (machine.memory_bandwidth * streaming_share);
    const double product = forward ? weighted_seconds(machine, op, {m, n, k, op.forward_bytes}, &GemmShape::m)
                                   : weighted_seconds(machine, op, {m, k, n, bytes}, &GemmShape::m);
    return product + (op.kernels - 1) * gap +
           traffic_seconds(machine, op, forward ? op.elementwise_forward_bytes : op.elementwise_backward_bytes);
  }
  if (direction == Direction::weight_grad) return 0;
  const double more =
      traffic_seconds(machine, op, forward ? op.elementwise_forward_bytes : op.elementwise_backward_bytes);
  if (is_attention(op.kind) && !writes_scores(op.attention)) return flash_seconds(machine, op, direction) + more;
  const double flops = forward ? op.forward_flops : op.input_grad_flops;
  const double bytes = forward ? op.forward_bytes : op.backward_bytes;
  if (is_attention(op.kind))
    return op.kernels * gap + scores_seconds(machine, op, flops, bytes) + more + dropout_seconds(machine, op);
  const double logits = op.logits * c.logit_bytes / 2;  // half of it in each direction
  return op.kernels * gap + traffic_seconds(machine, op, bytes) + more +
         logits / (machine.memory_bandwidth * streaming_share);
}

double load_seconds(const Machine& machine, const Operator& op, const Load& load) {
  const double matrix =
      std::max(matrix_seconds(machine, op, load.flops), streaming_seconds(machine, load.matrix_bytes));
  const double elementwise = streaming_seconds(machine, load.elementwise_bytes);
  const int more = load.flops > 0 ? products_of(machine, op) - 1 : 0;
  return (load.kernels + more) * machine.launch_overhead + matrix + elementwise;
}

double bytes_of_update(Dtype parameter_dtype, Dtype moment_dtype) {
  const double narrow = bytes_of(parameter_dtype), wide = std::max(4.0, narrow);
  const double moments = narrow < wide ? bytes_of(moment_dtype) : wide;
  return 2 * wide + 4 * moments + wide + (narrow < wide ? narrow : 0.0);
}

}  // namespace

double gemm_efficiency(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t smallest = std::min({m, n, k});
  if (smallest < 1)
    throw std::invalid_argument("a matrix product of shape " + std::to_string(m) + " × " + std::to_string(n) + " × " +
                                std::to_string(k) + " has no efficiency");
  return machine.gemm_efficiency / (1 + machine.gemm_half / static_cast<double>(smallest));
}

double operator_seconds(const Machine& machine, const Operator& op, Direction direction) {
  if (op.kind == OpKind::communicate)
    throw std::invalid_argument(std::string("operator ") + op.part + " communicates: its time is a collective's");
  if (direction == Direction::backward)
    return operator_seconds(machine, op, Direction::input_grad) + operator_seconds(machine, op, Direction::weight_grad);
  if (op.again && direction == Direction::input_grad) {
    Operator once = op;
    once.again = false;
    return operator_seconds(machine, once, Direction::forward) + operator_seconds(machine, once, direction);
  }
  if (machine.trained) return kernel_seconds(machine, op, direction);
  return load_seconds(machine, op, load_of(op, direction));
}

double operators_seconds(const Machine& machine, std::span<const Operator> operators, Direction direction) {
  double seconds = 0;
  for (const Operator& op : operators)
    if (op.kind != OpKind::communicate) seconds += operator_seconds(machine, op, direction);
  return seconds;
}

double host_seconds(const Machine& machine, const Operator& op, Direction direction) {
  if (op.kind == OpKind::communicate) return 0;
  const bool has_weight = op.weight_grad_flops > 0;
  double kernels = op.kernels;
  if (direction == Direction::weight_grad) kernels = has_weight ? 1 : 0;
  if (direction == Direction::backward && has_weight) ++kernels;
  const bool is_backward = direction == Direction::backward || direction == Direction::input_grad;
  if (is_backward) kernels += op.more_backward_kernels;
  if (is_backward && op.again) kernels += op.kernels + (op.begins_checkpoint ? checkpoint_states : 0);
  // Dropout of scores is a separate kernel, and the host takes and sets the generator's state around it (Megatron-LM
  // megatron/core/tensor_parallel/random.py, fork).
  constexpr int of_dropout = 2;
  if (is_attention(op.kind) && writes_scores(op.attention) && machine.trainer.dropout &&
      direction != Direction::weight_grad)
    kernels += of_dropout;
  const bool launches_graph = op.begins_graph && direction != Direction::weight_grad;
  return ((1 - op.in_graph) * kernels + (launches_graph ? 1 : 0)) * machine.constants.host_kernel;
}

double host_update_seconds(const Machine& machine, double elements, Dtype parameter_dtype, Dtype moment_dtype) {
  if (elements <= 0) return 0;
  if (!(machine.host_memory_bandwidth > 0))
    throw std::invalid_argument("machine " + machine.name +
                                " has no host_memory_bandwidth; add it with its source to the profile");
  return elements * bytes_of_update(parameter_dtype, moment_dtype) / machine.host_memory_bandwidth;
}

double optimizer_seconds(const Machine& machine, double elements, Dtype parameter_dtype, Dtype moment_dtype) {
  const double bytes_each = bytes_of_update(parameter_dtype, moment_dtype);
  if (machine.trained) {
    const double of_wide_moments = bytes_of_update(parameter_dtype, Dtype::float32);
    return elements * machine.constants.update_bytes * (bytes_each / of_wide_moments) /
           (machine.memory_bandwidth * streaming_share);
  }
  return machine.launch_overhead + streaming_seconds(machine, elements * bytes_each);
}

double cast_seconds(const Machine& machine, double bytes) {
  if (!machine.trained) return streaming_seconds(machine, bytes);
  return bytes * machine.constants.traffic / (machine.memory_bandwidth * streaming_share);
}

double norm_seconds(const Machine& machine, double bytes) {
  if (machine.trained) return gap_of(machine) + bytes / (machine.memory_bandwidth * streaming_share);
  return machine.launch_overhead + streaming_seconds(machine, bytes);
}

double adding_seconds(const Machine& machine, double bytes) {
  if (machine.trained) return gap_of(machine) + 3 * bytes / (machine.memory_bandwidth * streaming_share);
  return machine.launch_overhead + streaming_seconds(machine, 3 * bytes);
}

}  // namespace slipway::models
