// The closed form of every legal layout: the layouts that fit, with the bounds that order the search (private to
// search*). Guarded by tests/scenarios/search_test.cpp.
#pragma once

#include "scenarios/search/search.h"

namespace slipway::scenarios {

struct Candidate {
  Step choice;
  double bound_s = 0, memory_bytes = 0, memory_share = 0;
};

struct Screening {
  std::vector<Candidate> candidates;  // fitting ones, in the order of the space
  std::int64_t legal = 0, too_large = 0;
  std::vector<Candidate> smallest;             // the few with the least memory, fitting or not
  std::optional<PricedLayout> best_too_large;  // by its bound
};
// The result does not depend on `threads` (≥ 1). Throws std::invalid_argument when no layout is legal, with the reason
// for the first one.
Screening screen(const Scenario& scenario, const SearchSpace& space, double memory_share, int threads,
                 const std::function<bool()>& interrupted);

}  // namespace slipway::scenarios
