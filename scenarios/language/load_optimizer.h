// `run.optimizer`, and `run.lr`, which is the same as `run.optimizer.lr`: the learning rate with its
// schedule.
//
// Guarded by tests/scenario_load_test.cpp and tests/scenario_rate_test.cpp.
#pragma once

#include "scenarios/language/settings.h"
#include "schedules/bundle.h"

namespace slipway {

// Combinations that mean nothing, or nothing useful, are errors: a rate that ends above its highest, an end
// or a least rate of a schedule that does not decay, a decay that is over before the warm-up.
Optimizer load_optimizer(Settings& settings);

}  // namespace slipway
