// Step times of a trace, predicted or measured. execute, compare and fits share this definition.
//
//   start(r, k) = start of rank r's first compute task of step k
//   period(k)   = max over r of start(r, k+1) − start(r, k)          slowest rank
//   idle(k)     = mean over r of [start(r, k+1) − start(r, k) − compute time of rank r in step k]
//
// Where tasks repeat after a window of n steps (Trace::window), windows take the place of steps. Period and idle are
// then an n-th of the window's.
// Step 0 warms up (first touches, allocations). It is left out when another step has a period.
// The answer is the median over the other steps. A run of one step has no successor, so its period is its span.
// Guarded by tests/scenarios/step_times_test.cpp.
#pragma once

#include <vector>

#include "models/trace/statistics.h"
#include "models/trace/trace.h"

namespace slipway::scenarios {

struct StepTimes {
  // Steps [first, last] that count: each has a successor, or it is the only step.
  int first = 0, last = 0;
  std::vector<double> period_s, idle_s;  // one per counted step, or per window
  double median_period_s = 0, median_idle_s = 0;
  // Σ idle / Σ (period of the rank), over all counted steps and ranks.
  double idle_share = 0;
};

// Steps of the training before the trace: the losses of a run resumed from a checkpoint show them; otherwise 0.
// People count from 1, so step k of a trace (from 0) is steps_before + k + 1.
int steps_before(const Trace& trace);

// Throws std::invalid_argument when the trace has no compute record, or a rank has none in some step (window).
StepTimes step_times(const Trace& trace);

}  // namespace slipway::scenarios
