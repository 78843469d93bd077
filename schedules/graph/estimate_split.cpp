// Lower bounds for schedules whose backward is cut in two, or whose stages lie otherwise than s mod p (zb-*, dualpipe-v):
//
//   busy     a rank's lane runs its forwards, input gradients and weight gradients one after the other; the collectives
//            of a layer are a chain with its segments, and a weight gradient has none
//   passes   the longest path from rank 0's first task to the end of its list (estimate_passes.cpp)
// after which rank 0 updates its stages. Only on one kind of machine, with the same links in the groups of all ranks: else
// the compute alone is claimed. Guarded by tests/estimate_test.cpp and tests/search_answers_test.cpp.
#include <algorithm>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool are_alike(const LinkPath& a, const LinkPath& b) {
  return a.latency == b.latency && a.bandwidth == b.bandwidth && a.reduce_bandwidth == b.reduce_bandwidth &&
         a.tree.latency == b.tree.latency && a.tree.bandwidth == b.tree.bandwidth;
}

bool are_alike(const std::vector<LinkPath>& paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const LinkPath& path) { return are_alike(path, paths.front()); });
}

}  // namespace

bool is_split(Parts& parts, const LayoutChoice& choice, int micro_batches) {
  const Wiring& wires = parts.wiring(choice.layout);
  const ScheduleUse& use = parts.use_of(choice, micro_batches);
  return !use.is_plain && use.placement.copies == 1 && parts.base.slices == 1 && use.placement.rank.front() == 0 &&
         are_alike(wires.tensor) && are_alike(wires.context);
}

double split_busy_seconds(Parts& parts, const LayoutChoice& choice, int micro_batches, int q) {
  const StageCosts& costs = parts.costs_of(choice);
  const ScheduleUse& use = parts.use_of(choice, micro_batches);
  double busy = 0;
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[at(stage)] == q)
      busy += use.forwards[at(stage)] * (costs.forward_s[at(stage)] + costs.backward_s[at(stage)]);
  return busy;
}

}  // namespace slipway
