// Attention of queries on a part of their visible keys and values, so that parts can run one after the other (Liu et
// al. 2023; the merging rule is that of Dao 2022):
//
//   part i:  out_i = softmax(q·k_iᵀ/√d)·v_i,  l_i = log Σ exp(q·k_iᵀ/√d)
//   all:     l = log Σ exp(l_i),  out = Σ exp(l_i − l)·out_i
//   backward of part i, from all's out and l: the probabilities are exp(q·k_iᵀ/√d − l)
//
// Queries and keys are [b, heads, s, d]. Keys and values may have fewer heads. Not under autograd.
// Guarded by tests/exec/partial_attention_test.cpp (both kernels against whole attention) and execute_ring_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/namespaces.h"

namespace slipway::exec {

// flash: the device's fused kernel; plain: scores in memory, for formats without one (on GPUs all but 16-bit ones).
enum class PartKernel : std::uint8_t { flash, plain };
PartKernel part_kernel_for(const at::Tensor& q);

struct PartialAttention {
  at::Tensor out;          // [b, heads, s, d], in the dtype of the queries
  at::Tensor log_sum_exp;  // [b, heads, s], float32 at least
};
// `masked`: keys and queries are equally many, and query i sees keys up to i.
PartialAttention attend_to_part(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool masked,
                                PartKernel kernel);

struct AttentionGradients {
  at::Tensor q, k, v;
};
// `all`: out and log-sum-exp of these queries over all parts.
AttentionGradients gradients_of_part(const at::Tensor& out_gradient, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const PartialAttention& all, bool masked, PartKernel kernel);

// Output so far and its log-sum-exp in one tensor [b, heads, s, d + 1], float32 at least. merge_into merges `part` into
// its queries [first, ...).
at::Tensor running_attention(const PartialAttention& part);
void merge_into(at::Tensor running, const PartialAttention& part, std::int64_t first);
PartialAttention whole_attention(const at::Tensor& running, at::ScalarType dtype);

}  // namespace slipway::exec
