#include "exec/operators/operators.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include "exec/operators/attention.h"
#include "exec/operators/embedding.h"
#include "exec/operators/expert_operators.h"
#include "exec/operators/head.h"
#include "exec/operators/mlp.h"
#include "exec/operators/norm.h"
#include "exec/operators/operator_context.h"

namespace slipway::exec {

at::Tensor rows_in(const at::Tensor& whole, const std::vector<TokenRange>& ranges) {
  std::vector<at::Tensor> parts;
  for (const TokenRange& range : ranges) parts.push_back(whole.narrow(0, range.first, range.count));
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

void run_operator(OperatorContext& c) {
  switch (c.op.kind) {
    case OpKind::embed:
      return run_embed(c);
    case OpKind::add_positions:
      return run_add_positions(c);
    case OpKind::norm:
      return run_norm(c);
    case OpKind::fork:
      c.wires[index_of(wire_branch)] = c.wires[index_of(wire_residual)];
      return;
    case OpKind::qkv:
      return run_qkv(c);
    case OpKind::attention:
      return run_attention(c);
    case OpKind::out_projection:
      return run_out_projection(c);
    case OpKind::add:
      return run_add(c);
    case OpKind::route:
      return run_route(c);
    case OpKind::up:
      return c.op.experts > 0 ? run_experts_up(c) : run_up(c);
    case OpKind::activation:
      return run_activation(c);
    case OpKind::down:
      return c.op.experts > 0 ? run_experts_down(c) : run_down(c);
    case OpKind::share:
      return run_share(c);
    case OpKind::combine:
      return run_combine(c);
    case OpKind::head_transform:
      return run_head_transform(c);
    case OpKind::logits:
      return run_logits(c);
    case OpKind::loss:
      return run_loss(c);
    case OpKind::ring_attention:
    case OpKind::communicate:
      break;
    case OpKind::compress:  // for predictions alone (exec/run/executable.cpp)
    case OpKind::expand:
    case OpKind::join:
    case OpKind::project:
      break;
  }
  throw std::runtime_error(std::string("operator ") + name_of(c.op.kind) + " of block " + std::to_string(c.op.block) +
                           " cannot run inside a segment");
}

}  // namespace slipway::exec
