// An interval as both answers of `slipway growth --fit` give it to programs: [least, most]. Guarded by
// tests/command_growth_fit_test.cpp and command_growth_run_test.cpp.
#pragma once

#include <nlohmann/json.hpp>

#include "models/fit/loss_curves.h"

namespace slipway {

inline nlohmann::json interval_json(const Interval& interval) { return {interval.least, interval.most}; }

}  // namespace slipway
