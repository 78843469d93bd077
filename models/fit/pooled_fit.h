// Constants of a training step, fitted to measured steps of many trainers and machines at once.
//
//   ln c(j; run) = ln book(j) + shared(j) + of its machine + of its trainer + of its site (a trainer on a machine)
//
//   minimise   Σ_rows weight · 2(√(1 + r²) − 1)  +  Σ_coordinates (x / spread)²,     r = ln(predicted / measured) / scale
//
// Every part has a prior of its own width (models/machine/step_constants.h), so a trainer with few rows stays near what
// the others share (partial pooling), and one that nobody has seen has the shared constants with a wider interval.
// Gauss-Newton with damping; the slopes come from the critical path of each step (schedules/time/critical_path.h).
// Guarded by tests/models/pooled_fit_test.cpp: known constants are recovered, and intervals hold them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/machine/step_constants.h"

namespace slipway::models {

// Whose deviation a coordinate is; the shared part has neither name.
struct PooledCoordinate {
  std::size_t constant = 0;      // index in step_constants()
  std::string machine, trainer;  // both: of the site
  double spread = 0;             // of the prior, of the logarithm
};

// A fitted set: shared part and deviations, and how sure they are.
struct PooledConstants {
  std::vector<PooledCoordinate> coordinates;
  std::vector<double> values;      // of the logarithm, per coordinate
  std::vector<double> covariance;  // of the values, row by row
  double table_spread = 0;         // of the logarithm: what a whole table differs beyond its constants
  double row_spread = 0;           // the same of a single run
};

StepConstants constants_of(const PooledConstants& pooled, const std::string& trainer, const std::string& machine);

// Standard deviation of ln(step) from the constants alone. `slopes`: d ln step / d ln c, per constant.
double spread_of(const PooledConstants& pooled, const std::string& trainer, const std::string& machine,
                 const std::vector<double>& slopes);

struct PooledRow {
  std::string trainer, machine;
  double measured_s = 0;
  double weight = 1;
};

// Prices of rows, each under its own constants.
struct PooledPrices {
  // New paths: replays each row's step. Slow.
  std::function<void(const std::vector<StepConstants>& constants)> replay;
  // Seconds by the paths of the last replay.
  std::function<std::vector<double>(const std::vector<StepConstants>& constants)> seconds;
  // d ln seconds / d ln c, per row and constant.
  std::function<std::vector<std::vector<double>>(const std::vector<StepConstants>& constants)> slopes;
};

struct PooledOptions {
  double scale = 0.08;                     // residual (of the logarithm) beyond which a row pulls linearly
  int replays = 3;                         // rounds that begin with new paths; 0: the paths are there
  const PooledConstants* start = nullptr;  // begins there
};

// The coordinates of the priors for these rows, at 0.
PooledConstants prior_constants(const std::vector<PooledRow>& rows);
PooledConstants fit_pooled(const std::vector<PooledRow>& rows, const PooledPrices& prices,
                           const PooledOptions& options = {});

// Σ over coordinates of 1 − posterior variance / prior variance.
double effective_constants(const PooledConstants& pooled);

}  // namespace slipway::models
