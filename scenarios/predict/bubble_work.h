// Prices of bubble work (scenarios/predict/filling.h) on other clusters. Guarded by tests/scenarios/explain_rates_test.cpp.
#pragma once

#include "models/machine/priced_cluster.h"
#include "scenarios/language/scenario.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

bool has_bubble_work(const Scenario& scenario);
// Durations of the filled window with other prices: `own` are those of the unfilled step's tasks on `cluster`.
// `stretch`: a factor on bubble work that computes.
Durations window_durations(const Scenario& scenario, const TaskGraph& step, const Durations& own,
                           const PricedCluster& cluster, int window, double stretch);

}  // namespace slipway::scenarios
