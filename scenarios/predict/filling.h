// Bubble work of a scenario (schedule.fill): replaces the prepared graph by a window with bubble work, and summarizes
// it. Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "models/training/pipefisher.h"
#include "scenarios/language/scenario.h"
#include "schedules/fill/fill.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

struct PreparedStep;

bool has_bubble_work(const Scenario& scenario);

struct FillSummary {
  std::string name;                               // "kfac", "evaluation"
  bool in_bubbles = true;                         // false: behind every window (schedule.fill none with K-FAC)
  int steps = 1;                                  // steps of the window, from one refresh to the next
  double unfilled_step_s = 0, filled_step_s = 0;  // without contention
  double bubble_work_s = 0, behind_s = 0;         // per window, mean over ranks
  Utilization utilization;
  std::vector<RankFilling> ranks;
};

// Replaces prepared.graph and prepared.durations by the filled window, where the scenario asks for one. The graph is
// ordered and sound. Throws UsageError if bubble work has no price, std::runtime_error with a grid for a broken
// invariant.
void fill_bubbles(PreparedStep& prepared);

// The closed-form model of Osawa et al. 2022 for this scenario. Unset without a block table, and for stages of
// different sizes, schedules other than gpipe, 1f1b and chimera, and several replicas.
std::optional<PipeFisherModel> pipefisher_of(const Scenario& scenario);

// Durations of the filled window with other prices: `own` are those of the unfilled step's tasks on `cluster`.
// `stretch`: a factor on bubble work that computes. Guarded by tests/scenarios/explain_rates_test.cpp.
Durations window_durations(const Scenario& scenario, const TaskGraph& step, const Durations& own,
                           const PricedCluster& cluster, int window, double stretch);

std::string filling_text(const PreparedStep& prepared);

}  // namespace slipway::scenarios
