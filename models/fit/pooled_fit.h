// Constants of a training step, fitted to measured steps of many trainers and machines at once.
//
//   ln c(j; run) = ln book(j) + shared(j) + of its machine + of its trainer + of its site (a trainer on a machine)
//
//   minimise   Σ_rows −2 weight · ln[(1 − ε) exp(1 − √(1 + r²)) / (area · scale) + ε / range]  +  (x − m)ᵀ P (x − m)
//   r = ln(predicted / measured) / scale
//
// A run is sound, with tails that pull linearly, or broken with probability ε: then its time is anywhere within e² of
// the predicted one, and it moves nothing.
// The prior has mean m and precision P. At first these are 0 and 1 / spread²; a user's runs are added to what was
// fitted before (PooledOptions::prior). Every part has a prior with its own width (models/machine/step_constants.h), so
// a trainer with few rows stays near what the others share (partial pooling), and a trainer without rows has the shared
// constants with a wider interval. Gauss-Newton with damping; the slopes come from the critical path of each step
// (schedules/time/critical_path.h).
// Guarded by tests/models/pooled_fit_test.cpp: known constants are recovered, and intervals hold them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/fit/fitted_runs.h"
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
  double row_spread = 0.085;       // of ln(measured / predicted) of a run, beyond what the constants leave open: of a
                                   // fit, the root mean square over its tables
  double freedom = 5;              // degrees of freedom of Student's t: how sure row_spread is; at least 1
  std::vector<FittedRuns> seen;    // ranges of the runs that it was fitted to, the user's own among them
  std::string runs;  // the user's own runs among those fitted to, as a table (laboratory/tables); or empty
};

StepConstants constants_of(const PooledConstants& pooled, const std::string& trainer, const std::string& machine);

// d ln step / d ln c of each constant on the machines of this name.
struct MachineSlopes {
  std::string machine;
  std::vector<double> slopes;
};
// Standard deviation of ln(step) from the constants alone. Where no run of a trainer or a machine was fitted, its
// deviations have the width of their prior. It is linear in the slopes: for a difference of slopes it is the deviation
// of the ratio of two steps.
double spread_of(const PooledConstants& pooled, const std::string& trainer, const std::vector<MachineSlopes>& slopes);

// A run's ln(measured) is as far from ln(predicted) in 90 of 100 cases: Student's t with PooledConstants::freedom.
// `spread`: as spread_of says.
double half_width(const PooledConstants& pooled, double spread);

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
  const PooledConstants* prior = nullptr;  // what is known before; unset: the book
};

// The coordinates of the priors for these rows, at 0.
PooledConstants prior_constants(const std::vector<PooledRow>& rows);
// The same beside what is known, with what it says.
PooledConstants prior_constants(const std::vector<PooledRow>& rows, const PooledConstants& known);
PooledConstants fit_pooled(const std::vector<PooledRow>& rows, const PooledPrices& prices,
                           const PooledOptions& options = {});

// Σ over coordinates of 1 − posterior variance / prior variance.
double effective_constants(const PooledConstants& pooled);

// Without the coordinates that have both a machine and a trainer: those of one cluster, which no other cluster shares.
// What is known of the rest stays, with its covariance (the marginal distribution).
PooledConstants without_sites(const PooledConstants& pooled);

// Adds a user's runs to a fitted set. Their trainer on their machine gets separate coordinates.
//
//   s² = (ν s₀² + Σ q w r² s² / κ) / (ν + Σ q − effective),     effective = trace(1 − P Σ)
//
// `noise`: standard deviation of ln(measured / predicted) of a run. Unset: s above, by fits of scale s until it settles
// (q = weight · how probably the run is sound, w = 1/√(1 + r²), κ = the mean of w r² of normal r, Σ = the covariance of
// the fit). The first fit's scale is wide, so that a cluster unlike all others is not taken for broken. The guess s₀ counts as ν runs:
// runs of a published table differ from a fit to all tables by about as much (docs/accuracy.md, in sample).
// The result's row_spread is s, its freedom the denominator; with a given noise the interval is that of a normal one.
PooledConstants add_runs(const std::vector<PooledRow>& rows, const PooledPrices& prices, const PooledConstants& known,
                         std::optional<double> noise = std::nullopt);

}  // namespace slipway::models
