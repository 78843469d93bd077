// An interval as JSON for both answers of `slipway growth --fit`: [least, most].
// Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <optional>
#include <vector>

#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

inline std::vector<double> bounds(const Interval& interval) { return {interval.least, interval.most}; }
inline std::optional<std::vector<double>> bounds(const std::optional<Interval>& interval) {
  return interval ? std::optional(bounds(*interval)) : std::nullopt;
}

}  // namespace slipway::scenarios
