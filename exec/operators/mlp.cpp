#include "exec/operators/mlp.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace slipway::exec {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// silu(gate)·up of [gate | up]. Its backward writes both gradients in place, which saves autograd's concatenation.
struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& packed) {
    const std::vector<at::Tensor> half = packed.chunk(2, -1);
    const at::Tensor opened = at::silu(half[0]);
    context->save_for_backward({packed, opened});
    return opened * half[1];
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<at::Tensor> half = saved[0].chunk(2, -1);
    const at::Tensor result = at::empty(saved[0].sizes(), saved[0].options());
    std::vector<at::Tensor> into = result.chunk(2, -1);
    at::mul_out(into[1], gradients[0], saved[1]);
    at::mul_out(into[0], gradients[0], half[1]);
    at::silu_backward_out(into[0], into[0], half[0]);
    return {result};
  }
};

// The name of a parameter of the MLP, or of the shared experts beside routed ones. The wire decides which.
std::string own_name(const OperatorContext& c, const std::string& name) {
  return (c.op.writes == wire_shared ? "mlp.shared." : "mlp.") + name;
}

}  // namespace

void run_up(OperatorContext& c) {
  at::Tensor& x = c.wires[index_of(c.op.writes)];
  x = linear(x, parameter_named(c.parameters, own_name(c, "up.weight")),
             find_parameter(c.parameters, own_name(c, "up.bias")), c.region.weight_gradients);
}

// GPT-2 uses the tanh approximation of gelu, BERT the exact one.
void run_activation(OperatorContext& c) {
  at::Tensor& x = c.wires[index_of(c.op.writes)];
  x = c.block.mlp == Mlp::swiglu ? SwigluFunction::apply(x) : at::gelu(x, c.block.post_norm ? "none" : "tanh");
}

void run_down(OperatorContext& c) {
  at::Tensor& x = c.wires[index_of(c.op.writes)];
  x = linear(x, parameter_named(c.parameters, own_name(c, "down.weight")), nullptr, c.region.weight_gradients);
}

}  // namespace slipway::exec
