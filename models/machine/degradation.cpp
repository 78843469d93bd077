#include "models/machine/degradation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "models/machine/machine.h"

namespace slipway::models {

bool is_degraded(const Cluster& cluster) {
  return !cluster.degradation.slowdown.empty() || !cluster.degradation.ports.empty();
}

Cluster healthy(Cluster cluster) {
  cluster.degradation = {};
  return cluster;
}

Cluster at_best(Cluster cluster) {
  cluster.degradation.slowdown.clear();
  for (SlowPort& port : cluster.degradation.ports) port.period = port.down = 0;
  return cluster;
}

double fastest_gpu(const Cluster& cluster) {
  double least = 1;
  for (const double factor : cluster.degradation.slowdown) least = std::min(least, factor);
  return least;
}

double slowdown_of(const Cluster& cluster, int rank) {
  const std::vector<double>& factors = cluster.degradation.slowdown;
  if (factors.empty()) return 1;
  return factors.at(gpu_of(cluster, rank));
}

PortState port_state(const Cluster& cluster, int fabric, const Place& place) {
  PortState state;
  for (const SlowPort& slow : cluster.degradation.ports) {
    if (slow.fabric != fabric || slow.node != place.node) continue;
    const int shared_by = std::max(1, cluster.fabrics[fabric].gpus_per_port);
    if (slow.gpu >= 0 && slow.gpu / shared_by != place.gpu / shared_by) continue;
    state.share *= slow.share;
    if (slow.down > 0) state.period = slow.period, state.down = slow.down;
  }
  return state;
}

int slow_port_count(const Cluster& cluster, int ranks) {
  std::set<std::array<int, 3>> slow;  // fabric, node, port
  for (int rank = 0; rank < ranks && !cluster.degradation.ports.empty(); ++rank) {
    const Place place = place_of(cluster, rank);
    for (int f = 0; f < static_cast<int>(cluster.fabrics.size()); ++f) {
      const Fabric& fabric = cluster.fabrics[f];
      if (has_member(fabric, place.group) && port_state(cluster, f, place).mean_share() < 1)
        slow.insert({f, place.node, place.gpu / std::max(1, fabric.gpus_per_port)});
    }
  }
  return static_cast<int>(slow.size());
}

double pair_share(const Cluster& cluster, int node_a, int node_b) {
  double share = 1;
  for (const WeakPair& pair : cluster.weak_pairs)
    if ((pair.node_a == node_a && pair.node_b == node_b) || (pair.node_a == node_b && pair.node_b == node_a))
      share = std::min(share, pair.share);
  return share;
}

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xD1B54A32D192ED03U + (index + 1) * 0x9E3779B97F4A7C15U;
  for (int round = 0; round < 2; ++round) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
  }
  return z;
}

double uniform(std::uint64_t seed, std::uint64_t index) {
  return (static_cast<double>(random_bits(seed, index) >> 11) + 0.5) / 9007199254740992.0;  // 2^53
}

double spread_factor(Spread spread, double sigma, std::uint64_t seed, std::uint64_t gpu) {
  // Box and Muller 1958.
  const double radius = std::sqrt(-2 * std::log(uniform(seed, 2 * gpu)));
  const double z = radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * gpu + 1));
  return spread == Spread::half_normal ? 1 + sigma * std::abs(z) : std::exp(sigma * z);
}

}  // namespace slipway::models
