// Every lever tried alone, as far as it takes to find the fastest: its bound, then its replay, which has no contention,
// then its simulation, each no shorter than the one before (but a replay by little, 0.01 % seen, where contention delays
// the step before). A lever that is slower than the scenario's own step, or than all of the fastest ones that fit, keeps
// the number that shows so.
//
// Forked workers do it, one a core (scenarios/search/workers.h). The answer does not depend on their number.
// Guarded by tests/scenarios/explain_levers_test.cpp: the three best are those of simulating every lever.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/search/levers.h"

namespace slipway::scenarios {

struct LeverTrial {
  Variation variation;
  bool simulated = false;  // else step_s is a lower bound: the closed form's or the replay's
  double step_s = 0;
  double gain = 0;          // 1 - step_s / the scenario's own
  double memory_bytes = 0;  // of 99 % of needs, on the rank that is least likely to fit
  double memory_share = 0;  // of that rank's GPU
  double fit_probability = 0;
  bool fits() const { return is_likely(fit_probability); }
  std::string why_not;  // the lever cannot be tried; all else is 0
};

struct LeverOptions {
  int workers = 0;  // 0: one a core
  // So many of the fastest that fit are simulated; of those that do not fit, all that are faster than the step.
  int simulated = 10;
  std::function<void(int done, int left)> progress;
  std::function<bool()> interrupted;
};

// Those that fit first, the largest gain first; then those that do not fit; then those that cannot be tried. Levers that
// make the same step as one before them are left out, and after an interruption those that were not tried yet.
// `step_s`: the scenario's own.
std::vector<LeverTrial> lever_trials(const Scenario& scenario, double step_s, const std::vector<Lever>& levers,
                                     const LeverOptions& options = {});

}  // namespace slipway::scenarios
