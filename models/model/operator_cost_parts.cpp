#include "models/model/operator_cost_parts.h"

namespace slipway::models {

namespace {

bool fused_norm(const CostInput& in) {
  // PyTorch's LayerNorm is one kernel by itself; RMSNorm only with the kernel of flash2_rmsnorm.
  return in.block.norm == Norm::layer || in.shape.kernels == Kernels::flash2_rmsnorm;
}

// `matrices` of n × k; each of the m rows goes through one of them. Two operands are read and one is written; each
// gradient is a GEMM over the same three matrices.
void set_wide_products(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::int64_t matrices) {
  op.m = m, op.n = n, op.k = k;
  op.forward_flops = 2.0 * real(m) * real(n) * real(k);
  op.input_grad_flops = op.weight_grad_flops = op.forward_flops;
  op.forward_bytes = element(in) * (real(m * k) + real(matrices * k * n) + real(m * n));
  op.backward_bytes = 2 * op.forward_bytes;
  op.saved_bytes = element(in) * real(m * k);
}

// Of `numbers` that are gathered in the narrow format each rank casts its share. Where the copy by columns is the
// transpose of that by rows, it is made of what was gathered: read and written. With a scale per row it is a message of
// its own.
double cast_gathered_bytes(const CostInput& in, double numbers, bool transposes) {
  const NarrowRecipe recipe = in.shape.narrow;
  const bool of_whole_tensor = recipe == NarrowRecipe::delayed || recipe == NarrowRecipe::tensorwise;
  const bool makes_transpose = transposes && of_whole_tensor && copies_of(recipe, in.shape.habits) > 1;
  const double own =
      of_whole_tensor ? reads_of_cast(recipe) * element(in) + input_bytes(*format_of(recipe)) : cast_bytes(in);
  return own * numbers / in.shape.sharding.tensor +
         (makes_transpose ? 2 * input_bytes(*format_of(recipe)) * numbers : 0);
}

}  // namespace

void set_gemm(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k) {
  set_wide_products(op, in, m, n, k, 1);
}

double cast_bytes(const CostInput& in) {
  const NarrowRecipe recipe = in.shape.narrow;
  return reads_of_cast(recipe) * element(in) + copies_of(recipe, in.shape.habits) * input_bytes(*format_of(recipe));
}

void set_linear(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k,
                std::int64_t matrices) {
  set_wide_products(op, in, m, n, k, matrices);
  op.narrow = format_of(in.shape.narrow);
  if (!op.narrow) return;
  const double B = element(in), I = input_bytes(*op.narrow), W = weight_bytes(*op.narrow);
  const double input = real(m * k), weights = real(matrices * k * n), output = real(m * n);
  op.forward_bytes = I * input + W * weights + B * output;
  op.backward_bytes = I * (2 * output + input) + W * weights + B * (input + weights);
  op.saved_bytes = I * input;
  const NarrowHabits& habits = in.shape.habits;
  const double weight_forward = cast_bytes_of_forward(in.shape.narrow, habits, in.shape.dtype);
  const double weight_backward = cast_bytes_of_backward(in.shape.narrow, habits, in.shape.dtype);
  op.elementwise_forward_bytes = cast_bytes(in) * input + weight_forward * weights;
  op.elementwise_backward_bytes = cast_bytes(in) * output + weight_backward * weights;
  op.kernels += reads_of_cast(in.shape.narrow) * (weight_forward > 0 ? 2 : 1);
}

void cast_input_shard(Operator& op, const CostInput& in) {
  if (!op.narrow || !gathers_narrow(in)) return;
  const double numbers = real(op.m) * real(op.k);
  op.elementwise_forward_bytes += cast_gathered_bytes(in, numbers, false) - cast_bytes(in) * numbers;
  op.elementwise_backward_bytes += cast_gathered_bytes(in, numbers, true) - cast_gathered_bytes(in, numbers, false);
}

void cast_gradient_shard(Operator& op, const CostInput& in) {
  if (!op.narrow || !gathers_narrow(in)) return;
  const double numbers = real(op.m) * real(op.n);
  op.elementwise_backward_bytes += cast_gathered_bytes(in, numbers, true) - cast_bytes(in) * numbers;
}

void keep_sharded_input(Operator& op, const CostInput& in) {
  cast_input_shard(op, in);
  op.saved_bytes = (op.narrow ? input_bytes(*op.narrow) : element(in)) * residual_elements(in);
}

NormCost norm_cost(const CostInput& in) {
  const double B = element(in), F = summed(in);
  if (fused_norm(in)) return {2 * B, 3 * B, B, 1};
  return {2 * conversion(in) + 5 * F + 2 * B, 6 * B + 2 * conversion(in) + 13 * F, F + B, 6};
}

}  // namespace slipway::models
