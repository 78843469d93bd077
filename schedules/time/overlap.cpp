#include "schedules/time/overlap.h"

#include <algorithm>

namespace slipway::schedules {

HidingProduct product_beside(const TaskGraph& graph, const Work& message) {
  if (!graph.step.overlap_tensor || message.kind != WorkKind::wire_collective) return {};
  const auto operators = graph.operators(message);
  const auto at = static_cast<std::size_t>(message.first_op);
  const Operator& op = operators[at];
  if (op.axis != Axis::tensor) return {};
  const bool is_gather = op.forward == Collective::all_gather, is_scatter = op.forward == Collective::reduce_scatter;
  const bool is_backward = message.pass == Pass::backward || message.pass == Pass::input_grad;
  const bool is_dual = message.collective != op.forward;
  if (!(is_gather || is_scatter) || is_backward != is_dual || message.pass == Pass::weight_grad) return {};
  if (is_gather ? at + 1 == operators.size() : at == 0) return {};
  const Operator& product = operators[is_gather ? at + 1 : at - 1];
  const bool multiplies = product.kind == OpKind::qkv || product.kind == OpKind::up || product.kind == OpKind::down ||
                          product.kind == OpKind::out_projection;
  if (!multiplies || product.block != op.block) return {};
  return {&product, is_backward ? Direction::input_grad : Direction::forward};
}

double exposed_seconds(double message_s, double product_s, int pieces) {
  return std::max(message_s / pieces, message_s - product_s * (pieces - 1) / pieces);
}

}  // namespace slipway::schedules
