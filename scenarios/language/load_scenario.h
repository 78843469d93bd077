// `run.optimizer`, and `run.lr`, which is the same as `run.optimizer.lr`: the learning rate with its
// schedule.
//
// Guarded by tests/scenarios/scenario_load_test.cpp and tests/scenarios/scenario_load_test.cpp.
#pragma once

#include "scenarios/language/settings.h"
#include "schedules/graph/bundle.h"

namespace slipway::scenarios {

// Combinations that mean nothing, or nothing useful, are errors: a rate that ends above its highest, an end
// or a least rate of a schedule that does not decay, a decay that is over before the warm-up.
Optimizer load_optimizer(Settings& settings);

}  // namespace slipway::scenarios
