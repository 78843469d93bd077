// The links between one member of each pipeline rank: rank q·members + k for pipeline rank q, the links of its groups, and
// to its neighbours. k is the member with the slowest machines. A step takes as long as its slowest replica, so a bound
// for any one member bounds the step (private to schedules/bound).
// Guarded by tests/schedules/estimate_test.cpp.
#pragma once

#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

struct Wiring {
  std::vector<int> machine_group;               // per pipeline rank, like all below
  std::vector<LinkPath> tensor, context, data;  // of the member's groups
  std::vector<LinkPath> expert, expert_tensor;  // the same, where tokens travel to experts
  std::vector<LinkPath> to_next, to_previous;   // of its messages around the ring of pipeline ranks
  std::vector<int> alike;  // the first pipeline rank with the same machine and the same links of its groups
  LinkPath embedding;      // first and last pipeline rank
};
Wiring wiring_of(const PricedCluster& cluster, const Layout& layout, const TokenTraffic& tokens = {});
bool all_on_one_machine(const Wiring& wiring);
LinkPath world_path(const PricedCluster& cluster, int ranks);

}  // namespace slipway::schedules
