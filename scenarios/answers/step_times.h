// How long the steps of a trace take, predicted or measured: one definition for execute, compare and fits.
//
//   start(r, k) = start of rank r's first compute task of step k
//   period(k)   = max over r of start(r, k+1) − start(r, k)          "steady period", slowest rank
//   idle(k)     = mean over r of [start(r, k+1) − start(r, k) − compute time of rank r in step k]
//
// Where tasks repeat only after a window of n steps (Trace::window), the same with windows for steps; period and idle are
// an n-th of the window's then.
// Step 0 warms up (first touches, allocations): it is left out when another step has a period. The answer
// is the median over the rest. A run of one step has no successor: its period is its span. Guarded by
// tests/scenarios/step_times_test.cpp.
#pragma once

#include <vector>

#include "models/trace/statistics.h"
#include "models/trace/trace.h"

namespace slipway::scenarios {

struct StepTimes {
  // Steps [first, last] that count: each has a successor, or it is the only step.
  int first = 0, last = 0;
  std::vector<double> period_s, idle_s;  // of those steps; of windows one each
  double median_period_s = 0, median_idle_s = 0;
  // Σ idle / Σ (period of the rank), over all counted steps and ranks.
  double idle_share = 0;
};

// People count the steps of a training from 1: step k of a trace (from 0) is steps_before + k + 1. Of a run that went
// on from a checkpoint the steps before it, which its losses tell; else 0.
int steps_before(const Trace& trace);

// Throws std::invalid_argument when the trace has no compute record, or a rank has none in some step (window).
StepTimes step_times(const Trace& trace);

}  // namespace slipway::scenarios
