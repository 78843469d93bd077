#include "exec/operators/expert_operators.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "exec/operators/balancing.h"
#include "exec/operators/experts.h"
#include "exec/operators/grouped_linear.h"
#include "exec/operators/wide.h"

namespace slipway::exec {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A row of each to each: its backward goes by the inverse.
struct Permuted : torch::autograd::Function<Permuted> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& order,
                            const at::Tensor& inverse) {
    context->save_for_backward({inverse});
    return x.index_select(0, order);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0].index_select(0, context->get_saved_variables()[0]), {}, {}};
  }
};

// E times what each expert was chosen beyond the mean: whole numbers, whose sums are exact in any order.
struct LoadGradient : torch::autograd::Function<LoadGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weights, const at::Tensor& /*bias*/,
                            const at::Tensor& excess) {
    context->save_for_backward({excess});
    return weights.view_as(weights);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0], context->get_saved_variables()[0], {}};
  }
};

const at::Tensor& ends_of(const ExpertRows& rows) {
  return rows.arrived.ends.defined() ? rows.arrived.ends : rows.ends;
}

}  // namespace

void run_share(OperatorContext& c) { c.wires[index_of(wire_shared)] = c.wires[index_of(wire_branch)]; }

void run_route(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  const at::Tensor logits =
      linear(branch, parameter_named(c.parameters, "mlp.router.weight"), nullptr, c.region.weight_gradients);
  const ShardedParameter* const bias = find_parameter(c.parameters, "mlp.router.bias");
  c.rows =
      rows_for_experts(logits.flatten(0, 1), c.block, c.routing, bias ? bias->weight : at::Tensor(), branch.size(1));
  branch = to_experts(branch.flatten(0, 1), c.rows);
  at::Tensor gates = std::exchange(c.rows.weights, at::Tensor());
  if (bias) {
    const at::Tensor& choices = c.rows.choices;
    const at::Tensor leaf = c.region.tap(bias->weight.to(at_least_float(bias->weight)), bias->gradient);
    const at::Tensor excess = (choices * choices.size(0) - choices.sum()).to(leaf.scalar_type());
    gates = LoadGradient::apply(gates, leaf, excess);
  }
  if ((c.op.writes & wire_statistics) != 0) {
    gates = at::cat({gates, std::exchange(c.rows.scores, at::Tensor())}, 1);
    const at::Tensor expert = std::exchange(c.rows.expert, at::Tensor());
    const at::Tensor choices = c.balanced_parts == 1
                                   ? c.rows.choices.unsqueeze(0)
                                   : choices_by_part(expert, c.rows.samples, c.balanced_parts, c.rows.choices.size(0));
    c.wires[index_of(wire_statistics)] = choices.to(at_least_float(gates));
  }
  c.wires[index_of(wire_gates)] = gates;
}

void run_experts_up(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  ArrivedRows& arrived = c.rows.arrived;
  if (arrived.counts.defined()) sort_arrived(arrived, branch.device());
  if (arrived.order.defined()) branch = Permuted::apply(branch, arrived.order, arrived.place);
  branch = grouped_linear(branch, ends_of(c.rows), parameter_named(c.parameters, "mlp.up.weight"),
                          c.region.weight_gradients);
}

void run_experts_down(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = grouped_linear(branch, ends_of(c.rows), parameter_named(c.parameters, "mlp.down.weight"),
                          c.region.weight_gradients);
  const ArrivedRows& arrived = c.rows.arrived;
  if (arrived.order.defined()) branch = Permuted::apply(branch, arrived.place, arrived.order);
}

void run_combine(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  ExpertRows rows = c.rows;
  const at::Tensor gates = std::exchange(c.wires[index_of(wire_gates)], at::Tensor());
  const std::int64_t k = c.block.experts_per_token;
  rows.weights = gates.narrow(1, 0, k);
  branch = from_experts(branch, rows).unflatten(0, {-1, rows.samples});
  if ((c.op.reads & wire_statistics) != 0)
    branch = with_balancing_gradient(branch, gates.narrow(1, k, gates.size(1) - k),
                                     std::exchange(c.wires[index_of(wire_statistics)], at::Tensor()), rows.samples,
                                     c.balancing_factor / static_cast<double>(k));
  if ((c.op.reads & wire_shared) != 0) branch = branch + c.wires[index_of(wire_shared)];
}

}  // namespace slipway::exec
