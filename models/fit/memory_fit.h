// The shared memory constants, fitted to the runs of all trainers at once: runs that fitted, runs that ran out of
// memory and, where the allocator reported it, the peak.
//
//   verdict   −2·ln((1 − o)·Φ(±ln(peak / capacity) / row) + o/2)     − for a run that fitted, o: other_share
//   peak      2·(√(1 + r²) − 1)       r = ln(allocator's peak of the first stage / measured) / peak_spread
//             and the verdict on the measured peak beside the libraries, which hardly errs
//   priors    z²                      value = prior · exp(spread · z), deviations around 1
//
// Rows of one table share what no constant explains. So a trainer's runs count at most as `most_runs` together.
// The sum is minimised over z (Levenberg 1944, Marquardt 1963; forward differences; deterministic). The inverse of its
// curvature is the covariance. Guarded by tests/models/memory_fit_test.cpp: known constants come back from synthetic
// verdicts, what no run depends on stays at its prior.
#pragma once

#include <span>
#include <vector>

#include "models/memory/memory_odds.h"
#include "models/memory/pooled_memory.h"

namespace slipway::models {

constexpr double most_runs_of_a_trainer = 250;

// A fit of `runs` on top of priors, noise and deviations' spreads of `from`. It starts at the values of `from`, and has a
// deviation for every trainer and machine of the runs. `weights`: one for each run; empty: by most_runs_of_a_trainer.
// Throws std::invalid_argument without runs.
PooledMemory fit_memory(std::span<const MemoryRun* const> runs, const PooledMemory& from,
                        std::span<const double> weights = {});
// Weight of each run, so that no trainer counts as more than most_runs_of_a_trainer.
std::vector<double> weights_of(std::span<const MemoryRun* const> runs);

}  // namespace slipway::models
