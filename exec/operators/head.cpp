#include "exec/operators/head.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "exec/operators/norm.h"
#include "exec/operators/wide.h"

namespace slipway::exec {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
                            const at::Tensor& target_logit, const at::Tensor& targets, const at::Tensor& weight,
                            std::int64_t first) {
    context->save_for_backward({logits, log_sum, targets, weight});
    context->saved_data["first"] = first;
    return ((log_sum - target_logit) * weight).sum();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor matrix = saved[0].reshape({-1, saved[0].size(-1)});
    const at::Tensor weight = saved[3] * gradients[0];
    // weight·softmax in two passes. The weight, which is not negative, goes into the exponent, and a difference of
    // narrow logits and float32 is float32.
    at::Tensor exponent = at::sub(matrix, (saved[1] - weight.log()).unsqueeze(1));
    at::Tensor d = exponent.scalar_type() == matrix.scalar_type() ? exponent : at::empty_like(matrix);
    at::exp_out(d, exponent);
    const LocalTargets target = local_targets(saved[2], context->saved_data["first"].toInt(), d.size(1));
    const at::Tensor column = target.column.unsqueeze(1);
    // For a confident token, softmax − 1 loses its digits when the softmax is rounded first.
    const at::Tensor logit = matrix.gather(1, column).squeeze(1).to(weight.scalar_type());
    const at::Tensor own = at::expm1(logit - saved[1]) * weight;
    d.scatter_(1, column,
               at::where(target.outside, d.gather(1, column).squeeze(1), own.to(d.scalar_type())).unsqueeze(1));
    return {d.view(saved[0].sizes()), {}, {}, {}, {}, {}};
  }
};

std::int64_t first_token(const OperatorContext& c) {
  return parameter_named(c.parameters, "head.weight").pieces.front().begin;
}

}  // namespace

at::Tensor vocabulary_statistics(const at::Tensor& logits, const at::Tensor& targets, std::int64_t first) {
  at::NoGradGuard no_grad;
  const at::Tensor matrix = logits.detach().reshape({-1, logits.size(-1)});
  const at::ScalarType wide = at_least_float(matrix);
  const at::Tensor maximum = matrix.amax(1).to(wide);
  const at::Tensor sum = at::sub(matrix, maximum.unsqueeze(1)).exp_().sum(1);  // `wide`, as the maximum is
  const LocalTargets target = local_targets(targets, first, matrix.size(1));
  const at::Tensor logit =
      matrix.gather(1, target.column.unsqueeze(1)).squeeze(1).to(wide).masked_fill(target.outside, 0);
  return at::cat({maximum, sum, logit});
}

at::Tensor vocabulary_loss(const at::Tensor& logits, const at::Tensor& statistics, const at::Tensor& targets,
                           const at::Tensor& counted, std::int64_t first, double loss_tokens) {
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
  const at::Tensor dense = linear(branch, parameter_named(c.parameters, "head.transform.weight"),
                                  find_parameter(c.parameters, "head.transform.bias"), c.region.weight_gradients);
  branch = norm_with(c, "head.norm", at::gelu(dense));
}

void run_logits(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = linear(branch, parameter_named(c.parameters, "head.weight"), find_parameter(c.parameters, "head.bias"),
                  c.region.weight_gradients);
  if (c.op.writes & wire_statistics)
    c.wires[index_of(wire_statistics)] = vocabulary_statistics(branch, c.batch.targets, first_token(c));
}

void run_loss(OperatorContext& c) {
  const at::Tensor& logits = c.wires[index_of(wire_branch)];
  const std::int64_t first = first_token(c);
  const at::Tensor statistics = c.op.reads & wire_statistics ? c.wires[index_of(wire_statistics)]
                                                             : vocabulary_statistics(logits, c.batch.targets, first);
  c.wires[index_of(wire_loss)] =
      vocabulary_loss(logits, statistics, c.batch.targets, c.batch.counted, first, c.loss_tokens);
}

}  // namespace slipway::exec
