// Each rank's account of a step: computing, waiting for messages, waiting for a launch, and the bubble (private to
// metrics.h and breakdown.h). Guarded by tests/schedules/metrics_test.cpp and tests/schedules/breakdown_test.cpp.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "models/machine/machine.h"
#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

using ByAxis = std::array<double, message_axes>;

struct RankShares {
  double window = 0, compute = 0, exposed = 0;  // s
  ByAxis by_axis{};                             // exposed, by the axis of the messages
  double late = 0;                              // everything is there but the launch
  // The rest. Where there is none, the sum of thousands of tasks differs from the window in its last digits.
  double bubble() const {
    constexpr double rounding = 1e-11;
    const double rest = window - compute - exposed;
    return std::abs(rest) < rounding * window ? 0 : rest;
  }
};

struct Interval {
  double begin, end;
};
// From a rank's first compute task of the measured step to that of the next; with one step, the whole makespan.
Interval measured_interval(const TaskGraph& graph, const Timeline& timeline, TaskId first);
// Per rank; all 0 for ranks without tasks.
std::vector<RankShares> shares_of_ranks(const TaskGraph& graph, const Timeline& timeline,
                                        const PeriodicTimeline* periodic);
inline double left_out_s(const PeriodicTimeline* periodic) { return periodic == nullptr ? 0 : periodic->left_out_s(); }

}  // namespace slipway::schedules
