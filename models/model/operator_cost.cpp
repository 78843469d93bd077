#include "models/model/operator_cost.h"

#include <stdexcept>
#include <string>

#include "models/model/operator_cost_parts.h"

namespace slipway::models {

namespace {

bool is_shared(const Operator& op) { return (op.writes & wire_shared) != 0; }
// Columns of a tensor rank: of the shared experts, of an expert, of the MLP.
std::int64_t mlp_columns(const Operator& op, const CostInput& in) {
  const Sharding& cut = in.shape.sharding;
  if (is_shared(op) && in.block.parallel == Parallel::none) return in.block.shared_ffn / cut.tensor;
  return in.block.ffn / (in.block.experts > 0 ? expert_tensor_of(cut) : cut.tensor);
}

// Logits → fp32, one pass for maximum and sum of exponentials.
double statistics_bytes(const CostInput& in) {
  const double logits = real(in.tokens.whole * in.block.vocab / in.shape.sharding.tensor);
  return (conversion(in) + summed(in)) * logits;
}

}  // namespace

Tokens tokens_of(const WorkShape& shape) {
  const Sharding& cut = shape.sharding;
  const std::int64_t parts = cut.context * (cut.sequence_parallel ? cut.tensor : 1);
  if (shape.micro_batch < 1 || shape.sequence < 1 || cut.tensor < 1 || cut.context < 1)
    throw std::invalid_argument("micro-batch, sequence, tensor and context must be at least 1");
  if (shape.sequence % parts != 0)
    throw std::invalid_argument(
        "sequence of " + std::to_string(shape.sequence) + " tokens cannot be cut into " + std::to_string(parts) +
        " equal parts (context degree " + std::to_string(cut.context) +
        (cut.sequence_parallel ? " × tensor degree " + std::to_string(cut.tensor) + " with sequence parallel)" : ")") +
        "; change the sequence or a degree");
  const std::int64_t per_rank = shape.micro_batch * shape.sequence;
  return {per_rank / cut.context, per_rank / parts};
}

bool gathers_narrow(const CostInput& in) {
  const Sharding& cut = in.shape.sharding;
  return in.shape.narrow != NarrowRecipe::none && in.shape.habits.gathers_inputs && cut.tensor > 1 &&
         cut.sequence_parallel && in.block.parallel == Parallel::none;
}

bool dispatches_narrow(const CostInput& in) {
  return in.shape.narrow != NarrowRecipe::none && in.shape.habits.dispatches && in.shape.sharding.expert > 1;
}

// Forward reads M rows and writes M. Backward reads M gradient rows and adds them to M rows of the gradient (read and
// write). Every tensor rank makes all M rows, before the reduction. The kept token numbers (8 bytes a token) are left
// out as in Fujii's formula.
void set_embed(Operator& op, const CostInput& in) {
  const double rows = real(in.tokens.whole * in.block.hidden) * element(in);
  op.forward_bytes = 2 * rows;
  op.backward_bytes = 3 * rows;
}

// One kernel a table: residual read, row read, residual written. Backward per table: gradient read, rows of the table's
// gradient read and written.
void set_add_positions(Operator& op, const CostInput& in) {
  const int tables = in.block.token_types > 0 ? 2 : 1;
  op.forward_bytes = op.backward_bytes = 3.0 * tables * residual_elements(in) * element(in);
  op.kernels = tables;
}

void set_norm(Operator& op, const CostInput& in) {
  const NormCost each = norm_cost(in);
  const double numbers = residual_elements(in);
  op.forward_bytes = each.forward_bytes * numbers;
  op.backward_bytes = each.backward_bytes * numbers;
  op.saved_bytes = each.saved_bytes * numbers;
  op.kernels = each.kernels;
}

// No kernel forward (another name for the same tensor). Backward sums the two gradient paths.
void set_fork(Operator& op, const CostInput& in) {
  op.backward_bytes = 3 * element(in) * residual_elements(in);
  op.kernels = 0;
}

// Both are read, the sum is written. Backward hands the gradient to both paths for free. The sum of the two gradients
// where the sub-layer began (2 read, 1 written) is counted here, or by `fork` in blocks that begin with it.
void set_add(Operator& op, const CostInput& in) {
  op.forward_bytes = 3 * element(in) * residual_elements(in);
  op.backward_bytes = forks(in.block) ? 0.0 : op.forward_bytes;
}

void set_up(Operator& op, const CostInput& in) {
  const std::int64_t matrices = is_gated(in.block.mlp) ? 2 : 1;
  set_linear(op, in, in.tokens.whole, matrices * mlp_columns(op, in), in.block.hidden);
  keep_sharded_input(op, in);
}

// SwiGLU: silu (2), product (3); backward: product (3 + 3), silu (3). Keeps gate, up and silu(gate), the unfused form
// of Fujii's 8f/h; GEGLU alike. GELU, ReLU and its square, which is one fused kernel: 2, then 3; keep their input.
void set_activation(Operator& op, const CostInput& in) {
  const bool gated = is_gated(in.block.mlp);
  const std::int64_t rows = is_shared(op) ? in.tokens.whole : mlp_rows(in);
  const double column = real(rows * mlp_columns(op, in)) * element(in);
  op.forward_bytes = (gated ? 5 : 2) * column;
  op.backward_bytes = (gated ? 9 : 3) * column;
  op.saved_bytes = (gated ? 3 : 1) * column;
  op.kernels = gated ? 2 : 1;
}

void set_down(Operator& op, const CostInput& in) {
  set_linear(op, in, in.tokens.whole, in.block.hidden, mlp_columns(op, in));
  cast_gradient_shard(op, in);
}

// Both are read, the sum is written. Backward hands the gradient to both. Two norms of the residual have one gradient
// more to add (2 read, 1 written).
void set_join(Operator& op, const CostInput& in) {
  op.forward_bytes = 3 * element(in) * real(in.tokens.whole * in.block.hidden);
  if (in.block.parallel == Parallel::two_norms) op.backward_bytes = 3 * element(in) * residual_elements(in);
}

// A norm each of the residual and of the embedding, a product of 2h → h with a matrix that is whole on every tensor
// rank. Keeps the norms' inputs and results. Backward, the residual's gradient is added to that of the head (2 read, 1
// written).
void set_project(Operator& op, const CostInput& in) {
  set_gemm(op, in, in.tokens.sharded, in.block.hidden, 2 * in.block.hidden);
  const NormCost each = norm_cost(in);
  const double numbers = 2 * residual_elements(in);
  op.elementwise_forward_bytes += each.forward_bytes * numbers;
  op.elementwise_backward_bytes += each.backward_bytes * numbers + 3 * element(in) * residual_elements(in);
  op.saved_bytes += each.saved_bytes * numbers;
  op.kernels += 2 * each.kernels;
}

// Dense h×h, gelu (2, then 3), fused norm (2, then 3); keeps the input of each.
void set_head_transform(Operator& op, const CostInput& in) {
  set_gemm(op, in, in.tokens.sharded, in.block.hidden, in.block.hidden);
  const double numbers = element(in) * residual_elements(in);
  op.elementwise_forward_bytes = 4 * numbers;
  op.elementwise_backward_bytes = 6 * numbers;
  op.saved_bytes = 3 * numbers;
  op.kernels = 3;
}

// Makes the statistics of a vocabulary shard, so that they can be gathered before the loss.
void set_logits(Operator& op, const CostInput& in) {
  set_gemm(op, in, in.tokens.whole, in.block.vocab / in.shape.sharding.tensor, in.block.hidden);
  keep_sharded_input(op, in);
  if (in.shape.sharding.tensor == 1) return;
  op.elementwise_forward_bytes = statistics_bytes(in);
  op.kernels += 2;
}

// Keeps the logits in fp32 (Fujii's 4·V). Backward reads them and writes the gradient in the dtype.
void set_loss(Operator& op, const CostInput& in) {
  const int t = in.shape.sharding.tensor;
  const double logits = real(in.tokens.whole * in.block.vocab / t);
  op.forward_bytes = t == 1 ? statistics_bytes(in) : real(in.tokens.whole) * 3 * t * summed(in);
  op.backward_bytes = (summed(in) + element(in)) * logits;
  op.saved_bytes = summed(in) * logits;
  op.logits = logits;
  op.kernels = 2;
}

}  // namespace slipway::models
