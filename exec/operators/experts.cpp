#include "exec/operators/experts.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "exec/grouped_linear.h"
#include "exec/operators/operators.h"

namespace slipway {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows in the order of tokens: [tokens, k, h].
at::Tensor by_token(const at::Tensor& rows, const at::Tensor& place, std::int64_t experts_per_token) {
  return rows.index_select(0, place).view({-1, experts_per_token, rows.size(1)});
}

// Autograd's own backward would add the rows up in the order in which a GPU's threads come by.
struct ToExperts : torch::autograd::Function<ToExperts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& order, const at::Tensor& place) {
    const std::int64_t k = order.size(0) / x.size(0);
    context->save_for_backward({place});
    context->saved_data["k"] = k;
    return x.index_select(0, order.floor_divide(k));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor place = context->get_saved_variables()[0];
    return {by_token(gradients[0], place, context->saved_data["k"].toInt()).sum(1), {}, {}};
  }
};

struct FromExperts : torch::autograd::Function<FromExperts> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weights, const at::Tensor& order,
                            const at::Tensor& place) {
    context->save_for_backward({y, weights, order, place});
    return by_token(y, place, weights.size(1)).mul_(weights.unsqueeze(-1)).sum(1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &y = saved[0], &weights = saved[1], &order = saved[2], &place = saved[3];
    const at::Tensor dy = gradients[0].unsqueeze(1);  // [tokens, 1, h]
    const at::Tensor of_weights = by_token(y, place, weights.size(1)).mul_(dy).sum(-1);
    return {(weights.unsqueeze(-1) * dy).flatten(0, 1).index_select(0, order), of_weights, {}, {}};
  }
};

}  // namespace

// The weights are a softmax over the k chosen logits alone, in float32 at least.
ExpertRows rows_for_experts(const at::Tensor& logits, std::int64_t experts_per_token) {
  const at::Tensor wide = logits.element_size() < 4 ? logits.to(at::kFloat) : logits;
  const auto [best, expert] = at::topk(wide, experts_per_token, -1);
  ExpertRows rows;
  rows.weights = at::softmax(best, -1).to(logits.scalar_type());
  const auto [sorted, order] = at::sort(expert.flatten(), /*stable=*/true, 0, false);
  const auto index = sorted.options();
  rows.order = order;
  rows.ends = at::searchsorted(sorted, at::arange(logits.size(-1), index), /*out_int32=*/true, /*right=*/true);
  rows.place = at::empty_like(order).scatter_(0, order, at::arange(order.size(0), index));
  return rows;
}

at::Tensor to_experts(const at::Tensor& x, const ExpertRows& rows) { return ToExperts::apply(x, rows.order, rows.place); }

at::Tensor from_experts(const at::Tensor& y, const ExpertRows& rows) {
  return FromExperts::apply(y, rows.weights, rows.order, rows.place);
}

void run_route(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const at::Tensor logits = linear(branch, parameter_named(c.parameters, "mlp.router.weight"), nullptr, c.region.weight_gradients);
  c.rows = rows_for_experts(logits.flatten(0, 1), c.block.experts_per_token);
  c.rows.samples = branch.size(1);
  branch = to_experts(branch.flatten(0, 1), c.rows);
}

void run_experts_up(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = grouped_linear(branch, c.rows.ends, parameter_named(c.parameters, "mlp.up.weight"), c.region.weight_gradients);
}

void run_experts_down(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const at::Tensor y =
      grouped_linear(branch, c.rows.ends, parameter_named(c.parameters, "mlp.down.weight"), c.region.weight_gradients);
  branch = from_experts(y, c.rows).unflatten(0, {-1, c.rows.samples});
  c.rows = {};
}

}  // namespace slipway
