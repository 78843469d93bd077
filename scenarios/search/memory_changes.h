// Changes to a scenario that save memory. Each is a set of overrides that is loaded and checked like the user's own,
// then estimated. Where it fits, a replay of its task graph prices it.
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

#include "scenarios/predict/verdict.h"

namespace slipway::scenarios {

// "pipeline 4 instead of 2"; with both 0 a change without degrees: "full recompute".
struct Difference {
  std::string what;
  std::int64_t now = 0, before = 0;
};
struct Change {
  std::vector<Difference> steps;       // for several changes of one setting: the first `before`, the last `now`
  std::vector<std::string> overrides;  // "layout.pipeline=4", as for --set
};
std::string name_of(const Change& change);  // "ZeRO 2 instead of 0; full recompute"
// Every change to this scenario, possible or not.
std::vector<Change> changes_of(const Scenario& scenario);

struct TriedChange {
  Change change;
  std::string refused;  // why the scenario is impossible; empty: possible
  Verdict verdict;
  double step_time_s = 0;  // replayed; 0: not priced, because the estimate does not fit
};
struct ChangeSearch {
  int changes_together = 0;        // number of changes_of that each try combines
  std::vector<TriedChange> tried;  // fitting ones first, fastest first; the others by share of the GPU
};
// Adds one change at a time, at most `most_together`, until some combination fits by estimate and timeline.
// `overrides`: those that made `scenario` from its file.
ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together = 3);

// Replays the changed scenario and sets its step time, and its verdict with the timeline.
void price(const Scenario& scenario, TriedChange& tried);

}  // namespace slipway::scenarios
