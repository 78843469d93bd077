#include "schedules/bound/wiring.h"

#include <algorithm>

namespace slipway::schedules {
namespace {

LinkPath ring_path(const PricedCluster& cluster, Axis axis, int first, int stride, int count,
                   const TokenTraffic& tokens = {}) {
  if (count < 2) return {};
  Communicator ring{"", axis, {}, tokens};
  for (int i = 0; i < count; ++i) ring.ranks.push_back(first + i * stride);
  return path_of(cluster, ring);
}

// The member of a pipeline rank whose machines, over all pipeline ranks, have the lowest peaks; the first of several.
int slowest_member(const PricedCluster& cluster, const Layout& layout) {
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
    for (int q = 0; q < layout.pipeline; ++q) sum += seconds_per_flop[place_of(cluster, q * members + member).group];
    if (sum > most * (1 + 1e-12)) most = sum, slowest = member;
  }
  return slowest;
}

}  // namespace

Wiring wiring_of(const PricedCluster& cluster, const Layout& layout, const TokenTraffic& tokens) {
  Wiring wiring;
  const int p = layout.pipeline, t = layout.tensor, c = layout.context, members = layout.data * c * t;
  const bool dispatched = dispatches(sharding_of(layout));
  const int e = layout.expert, cut = dispatched ? expert_tensor_of(sharding_of(layout)) : 1;
  const int member = slowest_member(cluster, layout);
  for (int q = 0; q < p; ++q) {
    const int first = q * members, rank = first + member;
    wiring.machine_group.push_back(place_of(cluster, rank).group);
    wiring.tensor.push_back(ring_path(cluster, Axis::tensor, rank - member % t, 1, t));
    wiring.context.push_back(ring_path(cluster, Axis::context, rank - member / t % c * t, t, c));
    wiring.data.push_back(ring_path(cluster, Axis::data, first + member % t, t, shards_of(layout)));
    wiring.expert.push_back(ring_path(cluster, Axis::expert, rank - member / cut % e * cut, cut, e, tokens));
    wiring.expert_tensor.push_back(ring_path(cluster, Axis::expert_tensor, rank - member % cut, 1, cut));
    int like = 0;
    while (wiring.machine_group[like] != wiring.machine_group[q] || wiring.tensor[like] != wiring.tensor[q] ||
           wiring.context[like] != wiring.context[q] || wiring.data[like] != wiring.data[q] ||
           wiring.expert[like] != wiring.expert[q] || wiring.expert_tensor[like] != wiring.expert_tensor[q])
      ++like;
    wiring.alike.push_back(like);
    if (p == 1) continue;
    const int next = (q + 1) % p * members, previous = (q + p - 1) % p * members;
    wiring.to_next.push_back(ring_path(cluster, Axis::pipeline, rank, next - first, 2));
    wiring.to_previous.push_back(ring_path(cluster, Axis::pipeline, rank, previous - first, 2));
  }
  if (p > 1) wiring.embedding = ring_path(cluster, Axis::embedding, member, (p - 1) * members, 2);
  return wiring;
}

LinkPath world_path(const PricedCluster& cluster, int ranks) { return ring_path(cluster, Axis::world, 0, 1, ranks); }

bool all_on_one_machine(const Wiring& wires) {
  return std::all_of(wires.machine_group.begin(), wires.machine_group.end(),
                     [&](int group) { return group == wires.machine_group.front(); });
}

}  // namespace slipway::schedules
