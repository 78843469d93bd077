#include <ATen/ATen.h>

#include "exec/operators/operators.h"

namespace slipway {

void run_up(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch = linear(branch, parameter_named(c.parameters, "mlp.up.weight"),
                  find_parameter(c.parameters, "mlp.up.bias"), c.region.weight_gradients);
}

// GPT-2 uses the tanh approximation of gelu, BERT the exact one.
void run_activation(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  if (c.block.mlp == Mlp::swiglu) {
    const std::vector<at::Tensor> half = branch.chunk(2, -1);
    branch = at::silu(half[0]) * half[1];
  } else {
    branch = at::gelu(branch, c.block.post_norm ? "none" : "tanh");
  }
}

void run_down(OperatorContext& c) {
  at::Tensor& branch = c.wires[index_of(wire_branch)];
  branch =
      linear(branch, parameter_named(c.parameters, "mlp.down.weight"), nullptr, c.region.weight_gradients);
}

}  // namespace slipway
