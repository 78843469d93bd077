// Changes to a scenario that save memory, tried for real: each is a set of overrides, loaded and checked like
// the user's own, estimated, and, where it fits, priced by a replay of its task graph.
//
//   recompute ─ micro-batch / 2 ─ ZeRO + 1 ─ sequence parallel ─ tensor × 2 ─ pipeline × 2 ─ context × 2
//   one of them, or if none fits two, or three  ──►  those that fit, cheapest first
//
// Where a degree doubles, data parallelism halves, so that the GPUs stay the same.
// Guarded by tests/command_memory_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace slipway {

// Of the estimate with the scenario's trainer constants (memory_estimate.h).
struct Verdict {
  bool fits = true;
  bool fits_cautious = true;  // up to cautious_share of every GPU
  int fullest = 0;            // pipeline rank with the largest share of its GPU
  int rank = 0;       // of it, the one with the smallest GPU
  double bytes = 0;   // there
  double usable = 0;  // there: the GPU's memory times usable_share
  double share() const { return bytes / usable; }
};
// Per pipeline rank: of its members the one with the smallest GPU.
struct StageNeed {
  int rank = 0;
  double bytes = 0, capacity = 0;
};
// `kept_for_fillers`: bytes per pipeline rank that only a filled graph knows; empty = none.
std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<double>& kept_for_fillers = {});
Verdict verdict_of(const Scenario& scenario, const std::vector<double>& kept_for_fillers = {});

struct Change {
  std::string name;                    // "pipeline 4 instead of 2"
  std::vector<std::string> overrides;  // "layout.pipeline=4", as for --set
};
// Every change that this scenario could make, possible or not.
std::vector<Change> changes_of(const Scenario& scenario);

struct TriedChange {
  Change change;
  std::string refused;       // why the scenario cannot be; empty: it can
  Verdict verdict;
  double step_time_s = 0;  // replayed; 0: not priced, because it does not fit
};
struct ChangeSearch {
  int changes_together = 0;         // how many of changes_of each try combines
  std::vector<TriedChange> tried;   // those that fit first, fastest first; then by share of the GPU
};
// Adds one change at a time until some combination fits, at most `most_together`. `overrides` are those that
// made `scenario` from its file.
ChangeSearch search_changes(const Scenario& scenario, const std::vector<std::string>& overrides,
                            const std::function<void(double)>& progress, int most_together = 3);

// Seconds of one steady step in a replay without contention. Throws std::invalid_argument where the cluster
// cannot price it.
double replayed_step_s(Scenario scenario);

}  // namespace slipway
