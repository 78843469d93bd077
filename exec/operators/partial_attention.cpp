#include "exec/operators/partial_attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace slipway::exec {
namespace {

// Repeats heads, because kernels need as many heads of keys and values as of queries.
at::Tensor repeated(const at::Tensor& x, std::int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}
at::Tensor summed(const at::Tensor& gradient, std::int64_t heads) {
  return gradient.size(1) == heads ? gradient : gradient.unflatten(1, {heads, -1}).sum(2);
}

at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, bool masked) {
  const at::ScalarType wide = at::promote_types(q.scalar_type(), at::kFloat);
  at::Tensor scores = at::matmul(q, k.transpose(-1, -2)).to(wide) * (1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (!masked) return scores;
  const at::Tensor hidden = at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

}  // namespace

PartKernel part_kernel_for(const at::Tensor& q) {
  const bool half = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  const bool on_gpu = q.is_cuda() && half && q.size(-1) % 8 == 0 && q.size(-1) <= 256;
  return q.is_cpu() || on_gpu ? PartKernel::flash : PartKernel::plain;
}

PartialAttention attend_to_part(const at::Tensor& q, const at::Tensor& key, const at::Tensor& value, bool masked,
                                PartKernel kernel) {
  const at::Tensor k = repeated(key, q.size(1)), v = repeated(value, q.size(1));
  if (kernel == PartKernel::plain) {
    const at::Tensor scores = scores_of(q, k, masked), sum = scores.logsumexp(-1);
    return {at::matmul((scores - sum.unsqueeze(-1)).exp().to(q.scalar_type()), v), sum};
  }
  if (q.is_cpu()) {
    const auto [out, sum] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, masked);
    return {out, sum};
  }
  const auto result = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, masked);
  return {std::get<0>(result), std::get<1>(result)};
}

AttentionGradients gradients_of_part(const at::Tensor& out_gradient, const at::Tensor& q, const at::Tensor& key,
                                     const at::Tensor& value, const PartialAttention& all, bool masked,
                                     PartKernel kernel) {
  const std::int64_t heads = key.size(1);
  const at::Tensor k = repeated(key, q.size(1)), v = repeated(value, q.size(1));
  if (kernel == PartKernel::plain) {
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    const at::Tensor p = (scores_of(q, k, masked) - all.log_sum_exp.unsqueeze(-1)).exp();
    const at::Tensor dp = at::matmul(out_gradient, v.transpose(-1, -2)).to(p.scalar_type());
    const at::Tensor row = (out_gradient * all.out).to(p.scalar_type()).sum(-1, true);
    const at::Tensor ds = (p * (dp - row) * scale).to(q.scalar_type());
    return {at::matmul(ds, k), summed(at::matmul(ds.transpose(-1, -2), q), heads),
            summed(at::matmul(p.to(q.scalar_type()).transpose(-1, -2), out_gradient), heads)};
  }
  if (q.is_cpu()) {
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(out_gradient, q, k, v, all.out,
                                                                                       all.log_sum_exp, 0.0, masked);
    return {dq, summed(dk, heads), summed(dv, heads)};
  }
  const at::Tensor no_dropout = at::empty({}, q.options().dtype(at::kLong));
  const auto [dq, dk, dv] =
      at::_scaled_dot_product_flash_attention_backward(out_gradient, q, k, v, all.out, all.log_sum_exp.contiguous(), {},
                                                       {}, q.size(2), k.size(2), 0.0, masked, no_dropout, no_dropout);
  return {dq, summed(dk, heads), summed(dv, heads)};
}

at::Tensor running_attention(const PartialAttention& part) {
  return at::cat({part.out.to(part.log_sum_exp.scalar_type()), part.log_sum_exp.unsqueeze(-1)}, -1);
}

void merge_into(at::Tensor running, const PartialAttention& part, std::int64_t first) {
  const at::Tensor rows = running.narrow(2, first, part.out.size(2));
  const at::Tensor out = rows.narrow(-1, 0, rows.size(-1) - 1), sum = rows.narrow(-1, rows.size(-1) - 1, 1);
  const at::Tensor added = part.log_sum_exp.unsqueeze(-1), both = at::logaddexp(sum, added);
  out.mul_((sum - both).exp_()).addcmul_(part.out.to(out.scalar_type()), (added - both).exp_());
  sum.copy_(both);
}

PartialAttention whole_attention(const at::Tensor& running, at::ScalarType dtype) {
  const std::int64_t size = running.size(-1) - 1;
  return {running.narrow(-1, 0, size).to(dtype).contiguous(), running.select(-1, size).contiguous()};
}

}  // namespace slipway::exec
