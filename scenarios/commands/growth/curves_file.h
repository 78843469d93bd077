// The table of `slipway growth --fit`: losses of runs with constant batches.
//
//   submission,run,sequence,global_batch,learning_rate,tokens,loss        tokens: since the run's beginning
//
// Rows of one submission, run, batch and rate are a curve. Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

struct CurvesFile {
  std::string path;
  double sequence = 0;  // tokens, one for all rows
  std::vector<LossCurve> curves;
};

// Throws UsageError with file and line: unreadable, a missing column, a cell that is no number above 0, a batch or
// sequence that is not whole, two sequences.
CurvesFile read_curves(const std::string& path);

}  // namespace slipway::scenarios
