#include <cmath>

#include "models/model/operator_cost_parts.h"

namespace slipway::models {

namespace {

// Rotary positions: the turned heads are read and written once, in either direction.
void turn(Operator& op, const CostInput& in, double numbers, int kernels) {
  if (in.block.positions != Positions::rotary && !is_latent(in.block)) return;
  op.elementwise_forward_bytes += 2 * element(in) * numbers;
  op.elementwise_backward_bytes += 2 * element(in) * numbers;
  op.kernels += kernels;
}

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

// The output, which attention's backward pass reads: kept as the input of the projection behind it, but where that keeps
// a narrow copy of it.
double output_beside_copy(const CostInput& in, double numbers) {
  return in.shape.narrow == NarrowRecipe::none ? 0 : element(in) * numbers;
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

// Two products of 2·s·head_dim FLOPs per token, head and key, the second of the width of values. Flash kernels skip the
// masked half of a causal square. A slice attends to the tokens before it wholly, and to half of its own square; with a
// window, to no more than that many. Unfused kernels compute everything.
// Backward has four products, and for flash a fifth that makes the scores again (Dao 2022: 2.5 × forward). Three are of
// the width of queries, two of that of values. A sink is one more number in a head's softmax, left out. The
// log-sum-exp that flash keeps (4 bytes per token and head) is left out as in Fujii's formula.
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

}  // namespace slipway::models
