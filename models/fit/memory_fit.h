// A trainer's memory constants, fitted to runs that fitted, runs that ran out of memory, and, where the
// allocator reported it, the peak.
//
//   verdicts   2·ln(1 + e^−x)           x = ±ln(peak / usable) / width, + for a run out of memory: the
//   hinge peaks      2·(√(1 + r²) − 1)        r = ln(first stage's peak / measured) / scale; a run out of
//   memory is a
//                                       measurement that was cut off at the usable memory: r = min(0, ...)
//   priors     z²                       value = prior · exp(spread · z), |z| ≤ 8
//
// The sum is minimised over z (Levenberg 1944, Marquardt 1963; forward differences; deterministic), from
// the priors. A profile with measured peaks is fitted to them and to the cut-off ones, one without to
// verdicts. Guarded by tests/models/memory_fit_test.cpp: known constants come back, what no run depends on stays
// at its prior.
#pragma once

#include <span>
#include <vector>

#include "models/memory/memory_price.h"
#include "models/trainers/stack.h"

namespace slipway::models {

struct MemoryFit {
  MemoryConstants constants;
  std::vector<double> values;  // in the order of memory_parameters()
  // Standard deviation of ln(value) after the fit, in units of `spread`: near 1, the runs said nothing; 0
  // for what is not fitted.
  std::vector<double> remaining_spread;
  double loss = 0;
};

// Throws std::invalid_argument without runs.
MemoryFit fit_memory(std::span<const MemoryRun> runs, const StackMemory& from);

}  // namespace slipway::models
