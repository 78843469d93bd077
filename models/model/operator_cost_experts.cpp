// Operator cost of a mixture of experts: E experts, k per token, so R = M·k rows.
//
// FLOPs and bytes are those of all R rows, whichever expert gets them; no expert drops a token. The products of all
// experts of a rank are one grouped kernel. Its tiles fill the machine like one product of R rows, so that is its shape.
// The weights of all these experts are the floor of its bytes. Tiles that an expert's last rows leave half empty are left
// out. Where rows are dispatched, each rank routes M' tokens, and rows are as many on every rank (balanced).
#include <cmath>

#include "models/model/operator_cost_parts.h"

namespace slipway::models {

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
