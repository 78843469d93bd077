// A need of memory as a distribution, and so the probability that it fits.
//
//   ln(need) ~ Normal(ln(peak), s²)     s² = gᵀ·C·g + table² + row²     g = ∂ln(peak)/∂z, C: covariance of the constants
//   P(fits)  = (1 − o)·Φ(ln(capacity / peak) / s) + o/2                  o: runs that end as no count of memory knows
//
// `table` is what all runs of one model or cluster have in common and no constant explains, `row` what a single run has.
// Both are part of memory_constants.h. Guarded by tests/models/memory_odds_test.cpp: intervals hold synthetic needs as
// often as they say.
#pragma once

#include <string>
#include <vector>

#include "models/memory/memory_estimate.h"

namespace slipway::models {

// More likely than not: what "fits" means.
inline bool is_likely(double fit_probability) { return fit_probability >= 0.5; }

// A recommended layout fits with at least this probability.
constexpr double recommended_probability = 0.99;

struct MemoryOdds {
  double bytes = 0;   // median
  double spread = 0;  // standard deviation of its logarithm
  double other_share = 0;

  double fits(double capacity) const;  // probability
  double least() const;                // 90 % of needs are between these two
  double most() const;
  double recommended() const;  // the capacity that fits with recommended_probability
};
MemoryOdds odds_of(const StageTerms& terms, const MemoryConstants& constants);

// A layout that was run.
struct MemoryRun {
  std::string trainer, machine;
  MemoryFacts facts;  // of the trainer
  std::vector<StageTerms> stages;
  double capacity_bytes = 0;
  bool fitted = false;
  double reserved_bytes = 0;              // measured peak of stage 0 in the allocator; 0: not measured
  Gathered gathered = Gathered::unknown;  // of this run, for a fit to that peak
  Gathered usual = Gathered::unknown;     // of the trainer's version: for the predicted peak of stage 0
};

struct MemoryPrice {
  double static_bytes = 0;  // stage 0: weights, gradients, optimizer, tables: what is there between two steps
  double first_bytes = 0;   // stage 0: peak in the allocator, as is usual of the trainer's version
  MemoryOdds odds;          // of the stage that is least likely to fit
  double capacity_bytes = 0;
  double probability = 0;
  bool fits = false, fits_cautious = false;  // more likely than not; with recommended_probability
};
MemoryPrice price_memory(const MemoryRun& run, const MemoryConstants& constants);
// Allocator's peak of stage 0 with what is known of the run, for a fit.
double first_stage_peak(const MemoryRun& run, const MemoryConstants& constants);

}  // namespace slipway::models
