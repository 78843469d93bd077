// Which gap each filler goes to (private to the filling pass): the rule is told in fill.h.
// Guarded by tests/fill_test.cpp.
#pragma once

#include "schedules/graph/fill.h"
#include "schedules/graph/fill_gaps.h"

namespace slipway {

struct FillPlace {
  int step = 0;             // of the window
  std::uint32_t after = 0;  // tasks of the lane before it, in this step
  double start_s = 0;       // in the unfilled timeline's time, from the window's first task
  bool behind = false;      // found no gap: behind everything of the window
};

struct Assignment {
  std::vector<FillPlace> places;  // per item; a communication's step and after say nothing
  int steps = 1;              // of the window
};

// Throws std::invalid_argument when items wait for each other in a circle.
Assignment assign(const SteadyStep& steady, const Fillers& fillers, const FillOptions& options);

}  // namespace slipway
