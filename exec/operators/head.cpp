#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "exec/operators/operators.h"

namespace slipway {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor at_least_float(const at::Tensor& t) {
  return t.scalar_type() == at::kDouble ? t : t.to(at::kFloat);
}

struct LocalTargets {
  at::Tensor column, outside;  // [tokens]; column 0 where the target lies in another shard
};
LocalTargets local_targets(const at::Tensor& targets, std::int64_t first, std::int64_t columns) {
  const at::Tensor local = targets.reshape({-1}) - first;
  const at::Tensor outside = (local < 0).logical_or(local >= columns);
  return {local.masked_fill(outside, 0), outside};
}

// loss = Σ counted (log Σ exp − target logit) / N;  d logits = counted·(softmax − onehot) / N.
struct LossFunction : torch::autograd::Function<LossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& log_sum,
                            const at::Tensor& target_logit, const at::Tensor& targets,
                            const at::Tensor& weight, std::int64_t first) {
    context->save_for_backward({logits, log_sum, targets, weight});
    context->saved_data["first"] = first;
    return ((log_sum - target_logit) * weight).sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& logits = saved[0];
    const at::Tensor matrix = at_least_float(logits.reshape({-1, logits.size(-1)}));
    at::Tensor d = (matrix - saved[1].unsqueeze(1)).exp_();
    const LocalTargets target = local_targets(saved[2], context->saved_data["first"].toInt(), d.size(1));
    const at::Tensor minus_one = target.outside.logical_not().to(d.scalar_type()).neg_();
    d.scatter_add_(1, target.column.unsqueeze(1), minus_one.unsqueeze(1));
    d.mul_((saved[3] * gradients[0]).unsqueeze(1));
    return {d.to(logits.scalar_type()).view(logits.sizes()), {}, {}, {}, {}, {}};
  }
};

std::int64_t first_token(const OperatorContext& c) {
  return parameter_named(c.parameters, "head.weight").pieces.front().begin;
}

}  // namespace

at::Tensor vocabulary_statistics(const at::Tensor& logits, const at::Tensor& targets, std::int64_t first) {
  at::NoGradGuard no_grad;
  const at::Tensor matrix = at_least_float(logits.detach().reshape({-1, logits.size(-1)}));
  const at::Tensor maximum = matrix.amax(1);
  const at::Tensor sum = (matrix - maximum.unsqueeze(1)).exp_().sum(1);
  const LocalTargets target = local_targets(targets, first, matrix.size(1));
  const at::Tensor logit =
      matrix.gather(1, target.column.unsqueeze(1)).squeeze(1).masked_fill(target.outside, 0);
  return at::cat({maximum, sum, logit});
}

at::Tensor vocabulary_loss(const at::Tensor& logits, const at::Tensor& statistics,
                           const at::Tensor& targets, const at::Tensor& counted, std::int64_t first,
                           double loss_tokens) {
  const std::int64_t tokens = targets.numel();
  const at::Tensor shards = statistics.detach().view({-1, 3, tokens});  // [t, 3, tokens]
  const at::Tensor maxima = shards.select(1, 0), maximum = maxima.amax(0);
  const at::Tensor sum = (shards.select(1, 1) * (maxima - maximum).exp()).sum(0);
  const at::Tensor target_logit = shards.select(1, 2).sum(0);
  const at::Tensor weight = counted.defined() ? counted.reshape({-1}).to(sum.scalar_type()) / loss_tokens
                                              : at::full_like(sum, 1.0 / loss_tokens);
  return LossFunction::apply(logits, maximum + sum.log(), target_logit, targets, weight, first);
}

void run_head_transform(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const at::Tensor dense =
      linear(branch, parameter_named(c.parameters, "head.transform.weight"),
             find_parameter(c.parameters, "head.transform.bias"), c.region.weight_gradients);
  branch = norm_with(c, "head.norm", at::gelu(dense));
}

void run_logits(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = linear(branch, parameter_named(c.parameters, "head.weight"),
                  find_parameter(c.parameters, "head.bias"), c.region.weight_gradients);
  if (c.op.writes & wire_statistics)
    c.wires[index_of(wire_statistics)] = vocabulary_statistics(branch, c.batch.targets, first_token(c));
}

void run_loss(OperatorContext& c) {
  const at::Tensor& logits = c.wires[index_of(wire_branch)];
  const std::int64_t first = first_token(c);
  const at::Tensor statistics = c.op.reads & wire_statistics
                                    ? c.wires[index_of(wire_statistics)]
                                    : vocabulary_statistics(logits, c.batch.targets, first);
  c.wires[index_of(wire_loss)] =
      vocabulary_loss(logits, statistics, c.batch.targets, c.batch.counted, first, c.loss_tokens);
}

}  // namespace slipway
