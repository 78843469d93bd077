// `slipway calibrate --runs`: a few measured runs of the user's, added to what published runs say of the constants of a
// step (models/fit/pooled_fit.h, add_runs).
//
//   my-runs.csv ──► rows that have a time ──► fit, from the built-in constants ──► file for cluster.constants
//
// Guarded by tests/scenarios/calibrate_runs_test.cpp.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

namespace slipway::scenarios {

struct CalibrateRuns {
  std::string table;            // any that `slipway list tables` knows
  std::string output;           // the file of constants
  std::optional<double> noise;  // of ln(measured / predicted) of a run; unset: estimated
};

// Writes the file, prints the answer on `out` and notes on `err`. Throws UsageError for a table that cannot be fitted to;
// then nothing is written.
void calibrate_runs(const CalibrateRuns& asked, std::ostream& out, std::ostream& err);

}  // namespace slipway::scenarios
