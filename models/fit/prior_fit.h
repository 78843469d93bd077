// Constants with book values, fitted to measured times: few rows can move a constant a little, many rows a
// lot, and rows that say nothing about it leave it where the book has it.
//
//   minimise over z   Σ_rows 2·(√(1 + r²) − 1)  +  Σ_parameters z²
//   r = ln(predicted / measured) / scale,   value = min(prior · exp(spread · z), most),   |z| ≤ 8
//
// The first sum is soft-L1: a row that is off by a factor pulls like |r|, not like r². The second is a
// log-normal prior: spread 0.1 means "the book value within about 10 %". Levenberg (1944) and Marquardt
// (1963) steps with forward differences; deterministic.
// Guarded by tests/models/memory_fit_test.cpp: known constants are recovered, an outlier does not move them, a
// constant that no row depends on stays at its prior.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/namespaces.h"

namespace slipway::models {

struct PriorParameter {
  double prior = 1;     // > 0
  double spread = 0;    // standard deviation of ln(value); 0: not fitted
  double most = 1e300;  // the value is never above this
};

// Seconds of every row with these values (one per parameter); all must be positive and finite.
using PredictRows = std::function<std::vector<double>(std::span<const double> values)>;

struct PriorFit {
  std::vector<double> values;
  // Standard deviation of ln(value) after the fit, in units of `spread`. Near 1, the rows said nothing; 0 for what is
  // not fitted.
  std::vector<double> remaining_spread;
  double loss = 0;
};

struct PriorFitOptions {
  double scale = 0.03;        // residual beyond which a row pulls linearly
  std::vector<double> start;  // values to start from; empty: the priors
  int most_rounds = 60;
};

// Throws std::invalid_argument when sizes do not match, a prior or a measured time is not above 0, or a
// prediction is not finite and positive at the start.
PriorFit fit_with_priors(std::span<const PriorParameter> parameters, std::span<const double> measured,
                         const PredictRows& predict, const PriorFitOptions& options = {});

}  // namespace slipway::models
