#include "schedules/graph/estimate_prices.h"

#include <algorithm>

namespace slipway {

void RingSum::add(Collective collective, int members, double bytes) {
  const RingTraffic traffic = ring_traffic(collective, members, bytes);
  rounds += traffic.rounds;
  link_bytes += traffic.bytes_per_link;
  reduced_bytes += traffic.reduced_bytes;
}

BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine) {
  const std::vector<Operator> operators = operators_of(model, block, block + 1, shape);
  const bool again = recompute == Recompute::full &&
                     blocks_of(model)[static_cast<std::size_t>(block)].kind == BlockKind::transformer;
  BlockPrice price;
  for (const Operator& op : operators) {
    if (op.kind != OpKind::communicate) {
      const double forward = operator_seconds(machine, op, Direction::forward);
      price.forward_s += forward;
      price.backward_s += operator_seconds(machine, op, Direction::backward) + (again ? forward : 0);
      price.weight_s += operator_seconds(machine, op, Direction::weight_grad);
      // What the embedding keeps a trainer's estimate counts in its own way.
      if (op.kind != OpKind::embed && op.kind != OpKind::add_positions) price.kept_bytes += op.saved_bytes;
      continue;
    }
    ++price.cuts;
    if (op.forward == Collective::shift) continue;  // runs beside the attention, and may be hidden by it
    const bool context = op.axis == Axis::context;
    const int members = context ? shape.sharding.context : shape.sharding.tensor;
    RingSum& forward = context ? price.context_forward : price.tensor_forward;
    RingSum& backward = context ? price.context_backward : price.tensor_backward;
    forward.add(op.forward, members, op.message_bytes);
    if (again) backward.add(op.forward, members, op.message_bytes);
    backward.add(op.backward, members, op.message_bytes);
  }
  if (!again) return price;
  price.again_s = price.forward_s;
  price.tensor_again = price.tensor_forward;
  price.context_again = price.context_forward;
  price.kept_bytes = boundary_bytes(model, shape);  // the block's input
  return price;
}

namespace {

LinkPath ring_path(const Cluster& cluster, Axis axis, int first, int stride, int count) {
  if (count < 2) return {};
  Communicator ring{"", axis, {}};
  for (int i = 0; i < count; ++i) ring.ranks.push_back(first + i * stride);
  return path_of(cluster, ring);
}

}  // namespace

namespace {

// Of the members of a pipeline rank the one whose machines, over all pipeline ranks, have the lowest peaks; the first of
// several.
int slowest_member(const Cluster& cluster, const Layout& layout) {
  const int members = layout.data * layout.context * layout.tensor;
  std::vector<double> seconds_per_flop;
  for (const NodeGroup& group : cluster.groups) {
    const auto& peaks = group.machine.peak_flops;
    seconds_per_flop.push_back(1 / *std::max_element(peaks.begin(), peaks.end()));
  }
  int slowest = 0;
  double most = 0;
  for (int member = 0; member < members && cluster.groups.size() > 1; ++member) {
    double sum = 0;
    for (int q = 0; q < layout.pipeline; ++q)
      sum += seconds_per_flop[static_cast<std::size_t>(place_of(cluster, q * members + member).group)];
    if (sum > most * (1 + 1e-12)) most = sum, slowest = member;
  }
  return slowest;
}

}  // namespace

Wiring wiring_of(const Cluster& cluster, const Layout& layout) {
  Wiring wiring;
  const int p = layout.pipeline, t = layout.tensor, c = layout.context, members = layout.data * c * t;
  const int member = slowest_member(cluster, layout);
  for (int q = 0; q < p; ++q) {
    const int first = q * members, rank = first + member;
    wiring.machine_group.push_back(place_of(cluster, rank).group);
    wiring.tensor.push_back(ring_path(cluster, Axis::tensor, rank - member % t, 1, t));
    wiring.context.push_back(ring_path(cluster, Axis::context, rank - member / t % c * t, t, c));
    wiring.data.push_back(ring_path(cluster, Axis::data, first + member % t, t, layout.data * c));
    if (p == 1) continue;
    const int next = (q + 1) % p * members, previous = (q + p - 1) % p * members;
    wiring.to_next.push_back(ring_path(cluster, Axis::pipeline, rank, next - first, 2));
    wiring.to_previous.push_back(ring_path(cluster, Axis::pipeline, rank, previous - first, 2));
  }
  if (p > 1) wiring.embedding = ring_path(cluster, Axis::embedding, member, (p - 1) * members, 2);
  return wiring;
}

LinkPath world_path(const Cluster& cluster, int ranks) {
  return ring_path(cluster, Axis::world, 0, 1, ranks);
}

}  // namespace slipway
