#include "exec/operators/norm.h"

#include <ATen/ATen.h>

#include <string>
#include <string_view>

namespace slipway::exec {
namespace {

// "norm1" and "norm2" are the block's own; the embedding's and the head's have the block's name.
std::string norm_name(const OperatorContext& c) {
  switch (c.block.kind) {
    case BlockKind::embedding:
      return "embedding.norm";
    case BlockKind::head:
      return "head.norm";
    case BlockKind::transformer:
      break;
  }
  return c.op.part;
}

}  // namespace

at::Tensor norm_with(OperatorContext& c, const std::string& name, const at::Tensor& x) {
  const auto tapped = [&](const char* part) {
    const ShardedParameter& parameter = parameter_named(c.parameters, name + part);
    return c.region.tap(parameter.weight, parameter.gradient);
  };
  const at::Tensor weight = tapped(".weight");
  if (c.block.norm == Norm::rms) return at::rms_norm(x, {x.size(-1)}, weight, c.block.norm_epsilon);
  return at::layer_norm(x, {x.size(-1)}, weight, tapped(".bias"), c.block.norm_epsilon);
}

void run_norm(OperatorContext& c) {
  c.wires[index_of(c.op.writes)] = norm_with(c, norm_name(c), c.wires[index_of(c.op.reads)]);
}

// The bias of a row-parallel projection is added here, after the sum over the tensor ranks.
void run_add(OperatorContext& c) {
  at::Tensor branch = c.wires[index_of(wire_branch)];
  const bool attention = std::string_view(c.op.part) == "add1";
  if (const ShardedParameter* bias = find_parameter(c.parameters, attention ? "attention.out.bias" : "mlp.down.bias"))
    branch = branch + c.region.tap(bias->weight, bias->gradient);
  at::Tensor& residual = c.wires[index_of(wire_residual)];
  residual = residual + branch;
}

}  // namespace slipway::exec
