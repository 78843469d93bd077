// Filled bubbles of a scenario (schedule.fill): the plan's graph becomes a window with fillers in it, and
// this is what is told about it. Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/training/pipefisher.h"
#include "scenarios/language/scenario.h"
#include "schedules/fill/fill.h"

namespace slipway::scenarios {

struct Plan;

struct FillSummary {
  std::string name;                               // "kfac", "evaluation"
  bool in_bubbles = true;                         // false: behind every window (schedule.fill none with K-FAC)
  int steps = 1;                                  // of the window: between two refreshes
  double unfilled_step_s = 0, filled_step_s = 0;  // without contention
  double filler_s = 0, behind_s = 0;              // of a window, mean over ranks
  Utilization utilization;
  std::vector<RankFilling> ranks;
};

// Replaces plan.graph and plan.durations by the filled window, where the scenario asks for one. The graph
// is ordered and sound. Throws UsageError where fillers cannot be priced, std::runtime_error with a grid
// for a broken invariant.
void fill_bubbles(Plan& plan);

// The closed-form model of Osawa et al. 2022 of this scenario; nothing where it has none: without a block
// table, stages of different sizes, other schedules than gpipe, 1f1b and chimera, or several replicas.
std::optional<PipeFisherModel> pipefisher_of(const Scenario& scenario);

std::string filling_text(const Plan& plan);

}  // namespace slipway::scenarios
