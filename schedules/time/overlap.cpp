#include "schedules/time/overlap.h"

#include <algorithm>

#include "schedules/time/durations.h"

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

double seconds_of_message(const TaskGraph& graph, const Work& work, const Communicator& communicator,
                          const LinkPath& path, const Cluster& cluster) {
  const auto members = static_cast<int>(communicator.ranks.size());
  double seconds = message_seconds(as_sent(graph.step.layout, work, path), members, path);
  if (const HidingProduct beside = product_beside(graph, work); beside.product != nullptr) {
    const std::int32_t rank = communicator.ranks.front();
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    const double product_s = machine.constants.whole * operator_seconds(machine, *beside.product, beside.direction);
    seconds = exposed_seconds(seconds, product_s * slowdown_of(cluster, rank), members);
  }
  return seconds + seconds_before(work, communicator, cluster);
}

}  // namespace slipway::schedules
