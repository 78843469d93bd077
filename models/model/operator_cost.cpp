#include "models/model/operator_cost.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace slipway::models {

namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

double element(const CostInput& in) { return bytes_of(in.shape.dtype); }   // B
double summed(const CostInput& in) { return std::max(4.0, element(in)); }  // F
// Traffic of a conversion between the dtype and fp32, either way; none when they are the same.
double conversion(const CostInput& in) { return element(in) < summed(in) ? element(in) + summed(in) : 0.0; }
double residual_elements(const CostInput& in) { return real(in.tokens.sharded * in.block.hidden); }

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

void set_gemm(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k) {
  set_wide_products(op, in, m, n, k, 1);
}

// Traffic of casting one number of an input or a gradient: it is read, and written by rows and by columns.
double cast_bytes(const CostInput& in) {
  const NarrowRecipe recipe = in.shape.narrow;
  return reads_of_cast(recipe) * element(in) + copies_of(recipe, in.shape.habits) * input_bytes(*format_of(recipe));
}

// A Linear of a layer, in the narrow format where the trainer has one. The input is cast forward and the output's
// gradient backward, each by rows and by columns in one kernel; the weight gradient's operands are cast then. Results
// are in the dtype. Weights are cast here where that is done in every pass; once a step: durations.cpp.
void set_linear(Operator& op, const CostInput& in, std::int64_t m, std::int64_t n, std::int64_t k,
                std::int64_t matrices = 1) {
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

// The input of a column-parallel projection: its transpose is made in the backward pass.
void cast_input_shard(Operator& op, const CostInput& in) {
  if (!op.narrow || !gathers_narrow(in)) return;
  const double numbers = real(op.m) * real(op.k);
  op.elementwise_forward_bytes += cast_gathered_bytes(in, numbers, false) - cast_bytes(in) * numbers;
  op.elementwise_backward_bytes += cast_gathered_bytes(in, numbers, true) - cast_gathered_bytes(in, numbers, false);
}

// The gradient of a row-parallel projection's result.
void cast_gradient_shard(Operator& op, const CostInput& in) {
  if (!op.narrow || !gathers_narrow(in)) return;
  const double numbers = real(op.m) * real(op.n);
  op.elementwise_backward_bytes += cast_gathered_bytes(in, numbers, true) - cast_bytes(in) * numbers;
}

// Column-parallel projections keep their input as sequence parallelism shards it, and gather it again in the backward
// pass (Korthikanti 2022, the form of Fujii's formula).
void keep_sharded_input(Operator& op, const CostInput& in) {
  cast_input_shard(op, in);
  op.saved_bytes = (op.narrow ? input_bytes(*op.narrow) : element(in)) * residual_elements(in);
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

namespace {

struct NormCost {
  double forward_bytes, backward_bytes, saved_bytes;  // per normed number
  int kernels;
};

// Fused: x read, y written; backward x and dy read, dx written. Keeps x (the statistics, 2 numbers a token, are left
// out). Unfused RMSNorm, forward: x→fp32; x² (2F); mean (F); x·rstd (2F); →dtype; ·weight (2B).
//   Backward: dy·weight (2B), weight gradient dy·x̂ (3B, and B to sum it); →fp32; ·rstd (2F); dot with x
//   (3F, and F to sum it); the square's gradient 2x·dvar (2F, 2F); sum of both paths (3F); →dtype.
//   Keeps x in fp32 and x̂ in the dtype. In bf16 that makes 36 + 76 bytes a number instead of 4 + 6, or 224 instead of
//   20 for a layer. A fit to the rows of Hagemann 2023 gives 274.
NormCost norm_cost(const CostInput& in) {
  const double B = element(in), F = summed(in);
  if (fused_norm(in)) return {2 * B, 3 * B, B, 1};
  return {2 * conversion(in) + 5 * F + 2 * B, 6 * B + 2 * conversion(in) + 13 * F, F + B, 6};
}

}  // namespace

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

namespace {

// Rotary positions: the turned heads are read and written once, in either direction.
void turn(Operator& op, const CostInput& in, double numbers, int kernels) {
  if (in.block.positions != Positions::rotary && !is_latent(in.block)) return;
  op.elementwise_forward_bytes += 2 * element(in) * numbers;
  op.elementwise_backward_bytes += 2 * element(in) * numbers;
  op.kernels += kernels;
}

}  // namespace

// Norms of heads are norms of as many numbers, with a weight for queries and one for keys. They keep the projection's
// output beside what attention keeps.
void set_qkv(Operator& op, const CostInput& in) {
  const Block& block = in.block;
  const int t = in.shape.sharding.tensor;
  const std::int64_t kv_heads = kv_heads_of_rank(block, t),
                     queries_keys_width = (block.heads / t + kv_heads) * block.head_dim;
  set_linear(op, in, in.tokens.whole, queries_keys_width + kv_heads * value_dim(block), block.hidden);
  keep_sharded_input(op, in);
  const double queries_keys = real(in.tokens.whole * queries_keys_width);
  turn(op, in, queries_keys, 2);
  if (!block.qk_norm) return;
  const NormCost each = norm_cost(in);
  op.elementwise_forward_bytes += each.forward_bytes * queries_keys;
  op.elementwise_backward_bytes += each.backward_bytes * queries_keys;
  op.saved_bytes += each.saved_bytes * queries_keys;
  op.kernels += 2 * each.kernels;
}

// Latent attention (DeepSeek-AI 2024, DeepSeek-V2, equations 9 to 19), d of head_dim's numbers without positions and r
// turned ones:
//
//   q_down   h → q_latent, norm       kv_down  h → kv_latent + r, norm of the latent
//   q_up     q_latent → a·(d + r)     kv_up    kv_latent → a·(d + v)
//
// Matrices of the latents are whole on every tensor rank, which has M' tokens of the input; those behind them are
// divided by heads. Kept: the input once, each latent before and behind its norm. The keys' r turned numbers are copied
// to every head of a key (read and written once more, as in Megatron-Core), so attention keeps keys of d + r.

namespace {

void norm_latent(Operator& op, const CostInput& in, std::int64_t width) {
  const NormCost each = norm_cost(in);
  const double numbers = real(in.tokens.sharded * width);
  op.elementwise_forward_bytes += each.forward_bytes * numbers;
  op.elementwise_backward_bytes += each.backward_bytes * numbers;
  op.saved_bytes += each.saved_bytes * numbers;
  op.kernels += each.kernels;
}

void keep_sharded(Operator& op, const CostInput& in, std::int64_t width) {
  cast_input_shard(op, in);
  op.saved_bytes = (op.narrow ? input_bytes(*op.narrow) : element(in)) * real(in.tokens.sharded * width);
}

}  // namespace

void set_query_latent(Operator& op, const CostInput& in) {
  set_linear(op, in, in.tokens.sharded, in.block.q_latent, in.block.hidden);
  norm_latent(op, in, in.block.q_latent);
}

void set_key_value_latent(Operator& op, const CostInput& in) {
  set_linear(op, in, in.tokens.sharded, in.block.kv_latent + in.block.rope_head_dim, in.block.hidden);
  if (in.block.q_latent > 0) op.saved_bytes = 0;  // the queries' latent keeps the same input
  norm_latent(op, in, in.block.kv_latent);
}

void set_keys_values(Operator& op, const CostInput& in) {
  const Block& block = in.block;
  const std::int64_t heads = block.heads / in.shape.sharding.tensor, plain = block.head_dim - block.rope_head_dim;
  set_linear(op, in, in.tokens.whole, heads * (plain + value_dim(block)), block.kv_latent);
  keep_sharded(op, in, block.kv_latent);
  turn(op, in, real(in.tokens.whole * block.rope_head_dim), 1);
  const double keys = 2 * element(in) * real(in.tokens.whole * heads * block.head_dim);
  op.elementwise_forward_bytes += keys;
  op.elementwise_backward_bytes += keys;
  op.kernels += 1;
}

// Without a latent, queries are projected from the input, which the keys' latent has kept.
void set_queries(Operator& op, const CostInput& in) {
  const Block& block = in.block;
  const std::int64_t heads = block.heads / in.shape.sharding.tensor;
  set_linear(op, in, in.tokens.whole, heads * block.head_dim, block.q_latent > 0 ? block.q_latent : block.hidden);
  keep_sharded(op, in, block.q_latent);
  turn(op, in, real(in.tokens.whole * heads * block.rope_head_dim), 1);
}

namespace {

// Element-wise kernels on the b·(a/t)·s²/c scores of kernels that write them to memory.
// torch: scale (2B), mask (2B), →fp32, softmax (2F), →dtype; backward: →fp32, softmax (3F), →dtype,
//   scale (2B). 28 + 28 bytes a score in bf16; a fit to the rows of Hagemann 2023 gives 48 for the sum.
// fused_softmax: one kernel, 2B forward and 3B backward: 10 in bf16; the same fit gives 11.
// Kept: 5 bytes a score in bf16 (softmax output, dropout mask of 1 byte, dropout output; Korthikanti 2022). Selective
// recompute makes them again instead.
// The fused kernel of Megatron-LM takes 4 rows of scores at a time: where sequences times heads of a rank are no multiple
// of 4, single kernels run (megatron/model/fused_softmax.py: is_kernel_available).
void set_scores(Operator& op, const CostInput& in, double scores) {
  const double B = element(in), F = summed(in);
  constexpr std::int64_t rows_at_once = 4;
  const bool fused = in.shape.kernels == Kernels::fused_softmax &&
                     in.shape.micro_batch * in.block.heads / in.shape.sharding.tensor % rows_at_once == 0;
  op.elementwise_forward_bytes = (fused ? 2 * B : 4 * B + 2 * conversion(in) + 2 * F) * scores;
  op.elementwise_backward_bytes = (fused ? 3 * B : 2 * B + 2 * conversion(in) + 3 * F) * scores;
  op.forward_bytes += 2 * B * scores;   // q·kᵀ writes them, ·v reads them
  op.backward_bytes += 4 * B * scores;  // softmax's output gradient written; its input gradient read for
                                        // dq and for dk; softmax's output read for dv
  op.kernels = fused ? 3 : 7;
  if (!in.shape.recompute_attention) {
    op.saved_bytes += (2 * B + 1) * scores;
    return;
  }
  op.input_grad_flops += op.forward_flops;
  op.backward_bytes += op.forward_bytes;
  op.elementwise_backward_bytes += op.elementwise_forward_bytes;
}

}  // namespace

namespace {

// ∫ min(x, window) dx from 0 to x: keys that the queries before position x see.
double keys_before(double x, double window) {
  return x <= window ? x * x / 2 : window * window / 2 + window * (x - window);
}
// The same in chunks of `window`, of which each query sees its own up to itself.
double keys_in_chunks(double x, double window) {
  const double whole = std::floor(x / window), rest = x - whole * window;
  return (whole * window * window + rest * rest) / 2;
}

// Keys per query, mean, of a causal slice [before, before + sequence). The half of a position that is left out by
// counting x rather than x + ½ is that of the plain causal half.
double keys_seen(const CostInput& in) {
  const double before = real(in.shape.before), length = real(in.shape.sequence), end = before + length;
  const double window = in.block.window > 0 ? real(in.block.window) : end;
  if (window >= end) return before + 0.5 * length;
  const auto keys = in.block.window_chunks ? keys_in_chunks : keys_before;
  return (keys(end, window) - keys(before, window)) / length;
}

}  // namespace

// Two products of 2·s·head_dim FLOPs per token, head and key, the second of the width of values. Flash kernels skip the
// masked half of a causal square. A slice attends to the tokens before it wholly, and to half of its own square; with a
// window, to no more than that many. Unfused kernels compute everything.
// Backward has four products, and for flash a fifth that makes the scores again (Dao 2022: 2.5 × forward). Three are of
// the width of queries, two of that of values. A sink is one more number in a head's softmax, left out. The
// log-sum-exp that flash keeps (4 bytes per token and head) is left out as in Fujii's formula.
// The output, which attention's backward pass reads: kept as the input of the projection behind it, but where that keeps
// a narrow copy of it.
double output_beside_copy(const CostInput& in, double numbers) {
  return in.shape.narrow == NarrowRecipe::none ? 0 : element(in) * numbers;
}

void set_attention(Operator& op, const CostInput& in) {
  const Block& block = in.block;
  const Sharding& cut = in.shape.sharding;
  const bool flash = !writes_scores(in.shape.kernels);
  const std::int64_t heads = block.heads / cut.tensor, kv_heads = kv_heads_of_rank(block, cut.tensor);
  const std::int64_t keys = in.shape.before + in.shape.sequence;
  const double scores = real(in.tokens.whole) * real(heads) * real(keys);
  const double of_keys = real(block.head_dim), of_values = real(value_dim(block));
  op.m = in.tokens.whole, op.n = keys, op.k = block.head_dim, op.v = value_dim(block);
  op.heads = real(in.shape.micro_batch * heads), op.attention = in.shape.kernels;
  const double computed = scores * (flash && block.causal ? keys_seen(in) / real(keys) : 1.0);
  op.forward_flops = 2.0 * computed * (of_keys + of_values);
  op.input_grad_flops = 2.0 * computed * ((flash ? 3.0 : 2.0) * of_keys + 2.0 * of_values);

  const double B = element(in);
  const double q = real(in.tokens.whole * heads * block.head_dim);
  const double out = real(in.tokens.whole * heads * value_dim(block));
  const double own_kv = real(in.tokens.whole * kv_heads * (block.head_dim + value_dim(block))),
               all_kv = own_kv * cut.context * real(keys) / real(in.shape.sequence);
  op.forward_bytes = B * (q + out + all_kv);  // q, k, v read; output written
  op.backward_bytes =
      B * (2 * q + 2 * out + 2 * all_kv);  // q, output, its gradient, k, v read; three gradients written
  op.saved_bytes = B * (q + own_kv);       // the gathered k, v are gathered again (Fujii's formula); earlier
                                           // slices keep theirs
  op.saved_bytes += output_beside_copy(in, out);
  if (!flash) set_scores(op, in, scores);
}

// One round: the queries of this rank on one block of s/c keys and values. In a causal sequence half of the own block
// is visible. In every other block, half the keys are visible to all queries, or all keys to half the queries
// (models/model/token_ranges.h). So all rounds but the first are half a square without a mask. Rounds keep the
// log-sum-exp and make scores again (Liu et al. 2023), as flash kernels do: 5 products backward for 2 forward. Round 0
// keeps queries, keys and values; the passing blocks are sent around once more in the backward pass. After round 0, the
// partial output is also read and added to the sum, in the format of sums. Backward the same happens to the gradient of
// the queries.
void set_ring_attention(Operator& op, const CostInput& in) {
  const Block& block = in.block;
  const Sharding& cut = in.shape.sharding;
  const std::int64_t heads = block.heads / cut.tensor, kv_heads = kv_heads_of_rank(block, cut.tensor);
  const std::int64_t keys = in.shape.sequence / cut.context;
  op.m = in.tokens.whole, op.n = keys, op.k = block.head_dim, op.v = value_dim(block);
  op.heads = real(in.shape.micro_batch * heads), op.attention = in.shape.kernels;
  const double of_keys = real(block.head_dim), of_values = real(value_dim(block));
  const double square = real(in.tokens.whole) * real(heads) * real(keys) * (block.causal ? 0.5 : 1.0);
  op.forward_flops = 2.0 * square * (of_keys + of_values);
  op.input_grad_flops = 2.0 * square * (3.0 * of_keys + 2.0 * of_values);
  const double B = element(in), F = summed(in);
  const double share = block.causal && op.round > 0 ? 0.75 : 1.0;  // half of q or half of k and v, in turn
  const double q = real(in.tokens.whole * heads * block.head_dim);
  const double out = real(in.tokens.whole * heads * value_dim(block));
  const double kv = real(in.tokens.whole * kv_heads * (block.head_dim + value_dim(block)));
  op.forward_bytes = B * share * (q + out + kv);
  op.backward_bytes = B * share * (2 * q + 2 * out + 2 * kv);
  if (op.round == 0) {
    op.saved_bytes = B * (q + kv) + output_beside_copy(in, out);
    return;
  }
  op.elementwise_forward_bytes = share * (B + 2 * F) * out;
  op.elementwise_backward_bytes = share * (B + 2 * F) * q;
  op.kernels = 2;
}

void set_out_projection(Operator& op, const CostInput& in) {
  set_linear(op, in, in.tokens.whole, in.block.hidden, in.block.heads * value_dim(in.block) / in.shape.sharding.tensor);
  cast_gradient_shard(op, in);
}

// Both are read, the sum is written. Backward hands the gradient to both paths for free. The sum of the two gradients
// where the sub-layer began (2 read, 1 written) is counted here, or by `fork` in blocks that begin with it.
void set_add(Operator& op, const CostInput& in) {
  op.forward_bytes = 3 * element(in) * residual_elements(in);
  op.backward_bytes = forks(in.block) ? 0.0 : op.forward_bytes;
}

namespace {

bool is_shared(const Operator& op) { return (op.writes & wire_shared) != 0; }
// Columns of a tensor rank: of the shared experts, of an expert, of the MLP.
std::int64_t mlp_columns(const Operator& op, const CostInput& in) {
  const Sharding& cut = in.shape.sharding;
  if (is_shared(op) && in.block.parallel == Parallel::none) return in.block.shared_ffn / cut.tensor;
  return in.block.ffn / (in.block.experts > 0 ? expert_tensor_of(cut) : cut.tensor);
}

}  // namespace

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

namespace {

// Logits → fp32, one pass for maximum and sum of exponentials.
double statistics_bytes(const CostInput& in) {
  const double logits = real(in.tokens.whole * in.block.vocab / in.shape.sharding.tensor);
  return (conversion(in) + summed(in)) * logits;
}

}  // namespace

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

// Operator cost of a mixture of experts: E experts, k per token, so R = M·k rows.
//
// FLOPs and bytes are those of all R rows, whichever expert gets them; no expert drops a token. The products of all
// experts of a rank are one grouped kernel. Its tiles fill the machine like one product of R rows, so that is its shape.
// The weights of all these experts are the floor of its bytes. Tiles that an expert's last rows leave half empty are left
// out. Where rows are dispatched, each rank routes M' tokens, and rows are as many on every rank (balanced).

namespace {

constexpr double index_bytes = 8;

void set_products(Operator& op, const CostInput& in, std::int64_t n, std::int64_t k) {
  const std::int64_t experts = in.block.experts / in.shape.sharding.expert;
  op.experts = static_cast<int>(experts);
  set_linear(op, in, mlp_rows(in), n, k, experts);
}

// Tokens that this rank routes, and whose results it sums.
std::int64_t routed_tokens(const CostInput& in) {
  return dispatches(in.shape.sharding) ? in.tokens.sharded : in.tokens.whole;
}
double routed_rows(const CostInput& in) { return real(routed_tokens(in) * in.block.experts_per_token); }

// Rows that arrive sorted by rank are sorted by expert, and back: read and written, in either direction.
void sort_arrivals(Operator& op, const CostInput& in) {
  if (in.shape.sharding.expert == 1) return;
  const double bytes = 2 * element(in) * real(mlp_rows(in) * in.block.hidden);
  op.elementwise_forward_bytes += bytes;
  op.elementwise_backward_bytes += bytes;
  op.kernels += 1;
}

}  // namespace

bool gathers_narrow(const CostInput& in) {
  const Sharding& cut = in.shape.sharding;
  return in.shape.narrow != NarrowRecipe::none && in.shape.habits.gathers_inputs && cut.tensor > 1 &&
         cut.sequence_parallel && in.block.parallel == Parallel::none;
}

bool dispatches_narrow(const CostInput& in) {
  return in.shape.narrow != NarrowRecipe::none && in.shape.habits.dispatches && in.shape.sharding.expert > 1;
}

namespace {

// Numbers that travel to experts in 8 bits are cast before: read, and written once.
double cast_sent_bytes(const CostInput& in) {
  return element(in) + message_bytes(in.shape.narrow, in.shape.habits, NarrowMessage::tokens, in.shape.dtype);
}
// Where they arrive by rows, the copy by columns is made of them: read and written, in one kernel.
double bytes_of_arrival(const Operator& op) { return 2 * input_bytes(*op.narrow); }

}  // namespace

std::int64_t dispatched_rows(const CostInput& in) { return in.tokens.sharded * in.block.experts_per_token; }

std::int64_t mlp_rows(const CostInput& in) {
  const Sharding& cut = in.shape.sharding;
  if (in.block.experts == 0) return in.tokens.whole;
  if (!dispatches(cut))
    return std::llround(in.load * static_cast<double>(in.tokens.whole * in.block.experts_per_token));
  return std::llround(in.load * static_cast<double>(dispatched_rows(in) * expert_tensor_of(cut)));
}

// The router's GEMM; its logits in fp32 and the k largest (M·E read twice); then each row copied to its place (R·h read
// and written). Backward: rows back in the order of tokens (R·h read and written) and summed (R·h, M·h), and the sum of
// both gradients of the token (3·M·h). Keeps beside the input a row's weight, in fp32 and in the dtype, and three
// indices. Kernels: GEMM, to fp32, top-k, softmax, to the dtype, sort (2), ends of experts (2), inverse order (2),
// rows' tokens, copy.
void set_route(Operator& op, const CostInput& in) {
  const double B = element(in), F = summed(in);
  const double tokens = real(routed_tokens(in)), wide = tokens * real(in.block.hidden);
  const double rows = routed_rows(in), wide_rows = rows * real(in.block.hidden);
  const double logits = tokens * real(in.block.experts);
  op.m = routed_tokens(in), op.n = in.block.experts, op.k = in.block.hidden;
  op.forward_flops = op.input_grad_flops = op.weight_grad_flops = 2 * logits * real(in.block.hidden);
  op.forward_bytes = B * (wide + real(in.block.experts * in.block.hidden) + logits);
  op.backward_bytes = 2 * op.forward_bytes;
  op.elementwise_forward_bytes = (B + 2 * F) * logits + 2 * B * wide_rows;
  op.elementwise_backward_bytes = (B + 2 * F) * logits + B * (3 * wide_rows + 4 * wide);
  op.saved_bytes = B * real(in.tokens.sharded * in.block.hidden) + (F + (B < F ? B : 0) + 3 * index_bytes) * rows;
  op.kernels = 13;
  op.rows = rows;
  if (dispatches_narrow(in)) op.elementwise_forward_bytes += cast_sent_bytes(in) * wide, op.kernels += 1;
  if (in.shape.routing.balancing_loss == 0) return;
  // Softmax over all experts, kept (M·E read, written; backward two read, one written), and the experts' choices.
  op.elementwise_forward_bytes += 2 * F * logits;
  op.elementwise_backward_bytes += 3 * F * logits;
  op.saved_bytes += F * logits;
  op.kernels += 2;
}

void set_expert_up(Operator& op, const CostInput& in) {
  const std::int64_t matrices = is_gated(in.block.mlp) ? 2 : 1;
  set_products(op, in, matrices * in.block.ffn / expert_tensor_of(in.shape.sharding), in.block.hidden);
  if (dispatches_narrow(in))
    op.elementwise_forward_bytes += (bytes_of_arrival(op) - cast_bytes(in)) * real(op.m) * real(op.k);
  sort_arrivals(op, in);
}

void set_expert_down(Operator& op, const CostInput& in) {
  set_products(op, in, in.block.hidden, in.block.ffn / expert_tensor_of(in.shape.sharding));
  if (dispatches_narrow(in))
    op.elementwise_backward_bytes += (bytes_of_arrival(op) - cast_bytes(in)) * real(op.m) * real(op.n);
  sort_arrivals(op, in);
}

// No kernel forward. Backward, the sum of the two gradients of the normed tokens.
void set_share(Operator& op, const CostInput& in) {
  op.backward_bytes = 3 * element(in) * real(routed_tokens(in) * in.block.hidden);
  op.kernels = 0;
}

// After the products: rows in the order of tokens (R·h read and written), weighted (the same) and summed (R·h, M·h).
// Backward: the rows once more in the order of tokens (2·R·h); weighted gradients (M·h, R·h) and those of the weights
// (R·h, M·h); back in the order of experts (2·R·h). Keeps the experts' results. The shared experts' result is added
// (2 read, 1 written); its gradient is the sum's.
void set_combine(Operator& op, const CostInput& in) {
  const double B = element(in), wide = real(routed_tokens(in) * in.block.hidden);
  const double wide_rows = routed_rows(in) * real(in.block.hidden);
  const bool shared = in.block.shared_ffn > 0;
  op.forward_bytes = B * (5 * wide_rows + wide + (shared ? 3 * wide : 0));
  op.backward_bytes = B * (6 * wide_rows + 2 * wide);
  op.saved_bytes = B * wide_rows;
  op.kernels = 3 + (shared ? 1 : 0);
  if (dispatches_narrow(in)) op.elementwise_backward_bytes += cast_sent_bytes(in) * wide_rows;
}

}  // namespace slipway::models
