// Degradation: where a cluster is worse than its profile. Slow GPUs, slow or flapping ports, weak pairs of nodes.
//
//   slow GPU        its compute takes `slowdown` times as long
//   slow port       its links keep `share` of the fabric's bandwidth, each direction
//   flapping port   of every `period`, the first (1 − down) at that bandwidth, the rest at none:
//
//                     share ┤████████    ████████    ████████
//                         0 ┼────────────────────────────────► t      on average share·(1 − down)
//                           ├─ period ──┤
//   weak pair       a flow between these two nodes gets at most `share` of the fabric's bandwidth
//
// The order of a step's tasks is made without the first three and then meets them (healthy()). Weak pairs belong to the
// cluster as known beforehand, and a layout may place ranks around them (Cluster::gpu_of_rank).
// Guarded by tests/models/degradation_test.cpp and tests/sim/degraded_step_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct Cluster;
struct Place;

struct SlowPort {
  int fabric = 0;
  int node = 0;
  int gpu = -1;       // the port of this GPU; -1: all ports of the node
  double share = 1;   // of the bandwidth, 0 < share ≤ 1
  double period = 0;  // seconds; 0: does not flap
  double down = 0;    // share of each period, 0 ≤ down < 1
};

struct WeakPair {
  int node_a = 0, node_b = 0;
  double share = 1;
};

struct Degradation {
  std::vector<double> slowdown;  // per GPU of the cluster, numbered node by node; empty: 1 everywhere
  std::vector<SlowPort> ports;
};

// State of one port. Several SlowPorts of one port multiply their shares, and one of them may flap.
struct PortState {
  double share = 1, period = 0, down = 0;
  bool operator==(const PortState&) const = default;
  double mean_share() const { return share * (1 - down); }
};

bool is_degraded(const Cluster& cluster);
// The same cluster without slow GPUs and slow ports.
Cluster healthy(Cluster cluster);
// The same cluster at its best, for lower bounds: no port is ever down, no GPU is slower than its profile.
// fastest_gpu(): the least factor of any GPU, at most 1. A step on `cluster` takes at least this times one at its best.
Cluster at_best(Cluster cluster);
double fastest_gpu(const Cluster& cluster);

double slowdown_of(const Cluster& cluster, int rank);
PortState port_state(const Cluster& cluster, int fabric, const Place& place);
// Number of ports with less than the fabric's bandwidth through which GPUs of the first `ranks` ranks send. A port that
// several GPUs share counts once.
int slow_port_count(const Cluster& cluster, int ranks);
double pair_share(const Cluster& cluster, int node_a, int node_b);

// Distribution of the GPUs' compute time around their profile.
enum class Spread : std::uint8_t {
  half_normal,  // 1 + σ|z|: none is faster than the profile
  lognormal     // exp(σz): the profile is the median
};
// The factor of one GPU. A pure function of its arguments, independent of the cluster's size.
double spread_factor(Spread spread, double sigma, std::uint64_t seed, std::uint64_t gpu);
// random_bits: 64 random bits by splitmix64 (Steele et al. 2014) over both arguments. uniform: a number in (0, 1).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index);
double uniform(std::uint64_t seed, std::uint64_t index);

}  // namespace slipway::models
