// Figures of the operators of a mixture of experts: E experts, k a token, so R = M·k rows.
//
// FLOPs and bytes are those of all R rows, whoever gets them; no expert drops a token. The products of all experts are one
// grouped kernel, whose tiles fill the machine as those of one product of R rows would: that is its shape, and the weights of
// all experts are the floor of bytes under it. Tiles that an expert's last rows leave half empty are left out.
#include "models/figures.h"

#include <algorithm>

namespace slipway {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }
double element(const FigureInput& in) { return bytes_of(in.shape.dtype); }   // B
double summed(const FigureInput& in) { return std::max(4.0, element(in)); }  // F

constexpr double index_bytes = 8;

void set_products(Operator& op, const FigureInput& in, std::int64_t n, std::int64_t k) {
  const std::int64_t rows = mlp_rows(in), experts = in.block.experts;
  op.m = rows, op.n = n, op.k = k;
  op.forward_flops = op.input_grad_flops = op.weight_grad_flops = 2.0 * real(rows) * real(n) * real(k);
  op.forward_bytes = element(in) * (real(rows * k) + real(experts * k * n) + real(rows * n));
  op.backward_bytes = 2 * op.forward_bytes;
  op.saved_bytes = element(in) * real(rows * k);
}

}  // namespace

std::int64_t mlp_rows(const FigureInput& in) {
  return in.tokens.whole * std::max<std::int64_t>(1, in.block.experts_per_token);
}

// The router's GEMM; its logits in fp32 and the k largest (M·E read twice); then each row copied to its place (R·h read
// and written). Backward: rows back in the order of tokens (R·h read and written) and summed (R·h, M·h), and the sum of
// both gradients of the token (3·M·h). Kept beside the input: a row's weight, in fp32 and in the dtype, and three indices.
// Kernels: GEMM, to fp32, top-k, softmax, to the dtype, sort (2), ends of experts (2), inverse order (2), tokens of rows, copy.
void set_route(Operator& op, const FigureInput& in) {
  const double B = element(in), F = summed(in);
  const double tokens = real(in.tokens.whole), wide = real(in.tokens.whole * in.block.hidden);
  const double rows = real(mlp_rows(in)), wide_rows = real(mlp_rows(in) * in.block.hidden);
  const double logits = tokens * real(in.block.experts);
  op.m = in.tokens.whole, op.n = in.block.experts, op.k = in.block.hidden;
  op.forward_flops = op.input_grad_flops = op.weight_grad_flops = 2 * logits * real(in.block.hidden);
  op.forward_bytes = B * (wide + real(in.block.experts * in.block.hidden) + logits);
  op.backward_bytes = 2 * op.forward_bytes;
  op.elementwise_forward_bytes = (B + 2 * F) * logits + 2 * B * wide_rows;
  op.elementwise_backward_bytes = (B + 2 * F) * logits + B * (3 * wide_rows + 4 * wide);
  op.saved_bytes = B * real(in.tokens.sharded * in.block.hidden) + (F + (B < F ? B : 0) + 3 * index_bytes) * rows;
  op.kernels = 13;
}

void set_expert_up(Operator& op, const FigureInput& in) {
  set_products(op, in, 2 * in.block.ffn / in.shape.sharding.tensor, in.block.hidden);
}

// Behind the products: rows in the order of tokens (R·h read and written), weighted (the same) and summed (R·h, M·h).
// Backward: the rows once more in the order of tokens (2·R·h); weighted gradients (M·h, R·h) and those of the weights
// (R·h, M·h); back in the order of experts (2·R·h). Keeps the experts' results.
void set_expert_down(Operator& op, const FigureInput& in) {
  set_products(op, in, in.block.hidden, in.block.ffn / in.shape.sharding.tensor);
  const double B = element(in), wide = real(in.tokens.whole * in.block.hidden);
  const double wide_rows = real(mlp_rows(in) * in.block.hidden);
  op.elementwise_forward_bytes = B * (5 * wide_rows + wide);
  op.elementwise_backward_bytes = B * (6 * wide_rows + 2 * wide);
  op.saved_bytes += B * wide_rows;
  op.kernels = 4;
}

}  // namespace slipway
