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

double matrix_seconds(const Machine& machine, const Operator& op, double flops) {
  if (flops <= 0) return 0;
  const double peak = machine.peak_flops[static_cast<std::size_t>(op.dtype)];
  if (!(peak > 0))
    throw std::invalid_argument(
        "machine " + machine.name + " has no peak_flops for " + name_of(op.dtype) +
        "; choose another dtype, or add the peak to its profile (`slipway calibrate` measures it)");
  const double efficiency =
      is_attention(op.kind) ? machine.attention_efficiency : gemm_efficiency(machine, op.m, op.n, op.k);
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

double load_seconds(const Machine& machine, const Operator& op, const Load& load) {
  const double matrix =
      std::max(matrix_seconds(machine, op, load.flops), streaming_seconds(machine, load.matrix_bytes));
  const double elementwise = streaming_seconds(machine, load.elementwise_bytes);
  return load.kernels * machine.launch_overhead + matrix + elementwise;
}

}  // namespace

double gemm_efficiency(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t smallest = std::min({m, n, k});
  if (smallest < 1)
    throw std::invalid_argument("a matrix product of shape " + std::to_string(m) + " × " + std::to_string(n) + " × " +
                                std::to_string(k) + " has no efficiency");
  return machine.gemm_efficiency / (1 + machine.gemm_half / static_cast<double>(smallest));
}

double pace_of(const Machine& machine, OpKind kind, Direction direction) {
  const auto pick = [&](const Pace& pace) { return direction == Direction::forward ? pace.forward : pace.backward; };
  switch (kind) {
    case OpKind::embed:
    case OpKind::add_positions:
      return 1;
    case OpKind::head_transform:
    case OpKind::logits:
    case OpKind::loss:
      return pick(machine.head_pace);
    default:
      return pick(machine.layer_pace);
  }
}

double operator_seconds(const Machine& machine, const Operator& op, Direction direction) {
  if (op.kind == OpKind::communicate)
    throw std::invalid_argument(std::string("operator ") + op.part + " communicates: its time is a collective's");
  if (direction == Direction::backward)
    return operator_seconds(machine, op, Direction::input_grad) + operator_seconds(machine, op, Direction::weight_grad);
  return pace_of(machine, op.kind, direction) * load_seconds(machine, op, load_of(op, direction));
}

double operators_seconds(const Machine& machine, std::span<const Operator> operators, Direction direction) {
  double seconds = 0;
  for (const Operator& op : operators)
    if (op.kind != OpKind::communicate) seconds += operator_seconds(machine, op, direction);
  return seconds;
}

double optimizer_seconds(const Machine& machine, double elements, Dtype parameter_dtype) {
  const double narrow = bytes_of(parameter_dtype), wide = std::max(4.0, narrow);
  const double bytes_each = 6 * wide + wide + (narrow < wide ? narrow : 0.0);
  return machine.step_overhead + machine.launch_overhead + streaming_seconds(machine, elements * bytes_each);
}

double norm_seconds(const Machine& machine, double bytes) {
  return machine.launch_overhead + streaming_seconds(machine, bytes);
}

double adding_seconds(const Machine& machine, double bytes) {
  return machine.launch_overhead + streaming_seconds(machine, 3 * bytes);
}

}  // namespace slipway::models
