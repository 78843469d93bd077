// Loss and gradient norms of an executed run, from its folder:
//
//   losses.csv    step,samples,loss,learning_rate[,batch][,gradient_square,gradient_variance]
//   run.slip      tokens of a sequence, and the batch where it stays
//
// The norm columns need training.growth.rule norm-test. Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/fit/gradient_noise.h"
#include "models/fit/loss_curves.h"

namespace slipway::scenarios {

struct ExecutedRun {
  std::string folder;
  double sequence = 0;  // tokens
  bool has_norms = false;
  std::vector<GradientStep> steps;     // without norms, these are 0
  std::vector<double> learning_rates;  // one per step

  double tokens() const;
  Interval batches() const;  // least and most, sequences
  Interval rates() const;
};

// Throws UsageError with file and line, and the remedy: no such folder, no run in it, a cell that is no number, steps
// that do not follow each other.
ExecutedRun read_executed_run(const std::string& folder);

}  // namespace slipway::scenarios
