#include "exec/operators/balancing.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace slipway::exec {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The part of each of `tokens` tokens: sequences of a part follow each other, and tokens go through all sequences first.
at::Tensor part_of_each(std::int64_t tokens, std::int64_t samples, std::int64_t parts, const at::TensorOptions& index) {
  return at::arange(tokens, index).remainder(samples).floor_divide(samples / parts);
}

struct BalancingGradient : torch::autograd::Function<BalancingGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& branch, const at::Tensor& scores,
                            const at::Tensor& choices, std::int64_t samples, double factor) {
    context->save_for_backward({choices});
    context->saved_data["factor"] = factor;
    context->saved_data["tokens"] = scores.size(0);
    context->saved_data["samples"] = samples;
    return branch.view_as(branch);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor choices = context->get_saved_variables()[0];
    const std::int64_t tokens = context->saved_data["tokens"].toInt();
    const at::Tensor each = choices * context->saved_data["factor"].toDouble();
    const at::Tensor of_tokens =
        each.size(0) == 1 ? each.expand({tokens, -1})
                          : each.index_select(0, part_of_each(tokens, context->saved_data["samples"].toInt(),
                                                              each.size(0), choices.options().dtype(at::kLong)));
    return {gradients[0], of_tokens, {}, {}, {}};
  }
};

}  // namespace

at::Tensor with_balancing_gradient(const at::Tensor& branch, const at::Tensor& scores, const at::Tensor& choices,
                                   std::int64_t samples, double factor) {
  return BalancingGradient::apply(branch, scores, choices, samples, factor);
}

// Whole numbers, whose sums are exact in any order.
at::Tensor choices_by_part(const at::Tensor& expert, std::int64_t samples, std::int64_t parts, std::int64_t experts) {
  const at::Tensor part = part_of_each(expert.size(0), samples, parts, expert.options()).unsqueeze(1);
  return at::bincount((part * experts + expert).flatten(), {}, parts * experts).view({parts, experts});
}

}  // namespace slipway::exec
