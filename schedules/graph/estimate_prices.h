// What a step's estimate adds up: the price of one block of each run of the model, and the links between
// one member of each pipeline rank (private to schedules/graph/estimate*).
//
//   BlockPrice  one micro-batch through one block: compute, and the ring collectives between its segments
//   Wiring      rank q·members + k for pipeline rank q: the links of its groups, and to its neighbours. k is the member
//               with the slowest machines of all: a step takes as long as the replica that takes longest, so a bound
//               of any one member is a bound of the step
//
// Prices come from operators_of, cost.h, collectives.h and durations.h, and from nowhere else.
// Guarded by tests/estimate_test.cpp.
#pragma once

#include <algorithm>
#include <vector>

#include "models/collectives.h"
#include "schedules/graph/durations.h"

namespace slipway {

// Ring collectives one after the other; linear in the links, so priced by the path afterwards. Where all-reduces
// may take trees, by the better of both latencies and bandwidths: a bound stays below what is simulated.
struct RingSum {
  double rounds = 0, link_bytes = 0, reduced_bytes = 0;
  void add(Collective collective, int members, double bytes);
};
inline double seconds_over(const LinkPath& path, const RingSum& sum) {
  if (sum.rounds == 0) return 0;
  const bool trees = path.tree.bandwidth > 0;
  const double latency = trees ? std::min(path.latency, path.tree.latency) : path.latency;
  const double bandwidth = trees ? std::max(path.bandwidth, path.tree.bandwidth) : path.bandwidth;
  return sum.rounds * latency + sum.link_bytes / bandwidth +
         (path.reduce_bandwidth > 0 ? sum.reduced_bytes / path.reduce_bandwidth : 0);
}

struct BlockPrice {
  double forward_s = 0, backward_s = 0;  // backward: both gradients, and the forward again if recomputed
  double weight_s = 0;                   // of the backward: the weight gradients
  RingSum tensor_forward, tensor_backward, context_forward, context_backward;
  double again_s = 0;  // of the backward: the forward again, and its collectives
  RingSum tensor_again, context_again;
  int cuts = 0;           // communicate operators: each begins another segment
  double kept_bytes = 0;  // from the forward to the backward of one micro-batch
};

// Block `block` of blocks_of(model). Throws std::invalid_argument as operators_of and cost.h do.
BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine);

struct Wiring {
  std::vector<int> machine_group;               // per pipeline rank, as all below
  std::vector<LinkPath> tensor, context, data;  // of the member's groups
  std::vector<LinkPath> to_next, to_previous;   // of its messages around the ring of pipeline ranks
  LinkPath embedding;                           // first and last pipeline rank
};
Wiring wiring_of(const Cluster& cluster, const Layout& layout);
LinkPath world_path(const Cluster& cluster, int ranks);

}  // namespace slipway
