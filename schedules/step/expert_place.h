// The place of a rank among the experts, which are folded onto the ranks of a pipeline rank (schedules/step/layout.h):
//
//   member k = (d·context + c)·tensor + t = (replica·expert + e)·expert_tensor + u
//
// Guarded by tests/exec/execute_expert_parallel_test.cpp.
#pragma once

#include "models/model/sharding.h"
#include "schedules/step/layout.h"

namespace slipway::schedules {

struct ExpertPlace {
  int replica = 0;              // among the ranks that hold the same part of the same experts
  int expert = 0, degree = 1;   // among those that divide the experts
  int cut = 0, cut_degree = 1;  // among those that cut each expert's matrices
  bool operator==(const ExpertPlace&) const = default;
};

inline ExpertPlace expert_place_of(const Layout& layout, int rank) {
  const int cut = expert_tensor_of(sharding_of(layout)), member = rank % member_count(layout);
  return {member / (cut * layout.expert), member / cut % layout.expert, layout.expert, member % cut, cut};
}

}  // namespace slipway::schedules
