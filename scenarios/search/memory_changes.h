// Changes to a scenario that save memory. Each is a set of overrides that is loaded and checked like the user's own,
// then estimated. Where it fits, a replay of its task graph prices it, in forked workers.
//
//   recompute ─ micro-batch / 2 ─ ZeRO + 1 ─ sequence parallel ─ tensor × 2 ─ pipeline × 2 ─ context × 2
//   one of them, or if none fits (on its timeline) two, or three  ──►  those that fit, cheapest first
//
// Where a degree doubles, data parallelism halves, so that the GPUs stay the same.
// Guarded by tests/scenarios/memory_command_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/search/variation.h"

namespace slipway::scenarios {

struct TriedChange {
  Variation variation;
  std::string refused;  // why the scenario is impossible; empty: possible
  MemoryNeed memory;
  double step_time_s = 0;  // replayed; 0: not priced, because the estimate does not fit
};
struct ChangeSearch {
  int changes_together = 0;        // number of single changes that each try combines
  std::vector<TriedChange> tried;  // fitting ones first, fastest first; the others by share of the GPU
};
// Adds one change at a time, at most `most_together`, until some combination fits by estimate and timeline.
// `overrides`: those that made `scenario` from its file.
ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together = 3);

}  // namespace slipway::scenarios
