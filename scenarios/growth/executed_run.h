// What the folder of an executed run tells of its loss and of its gradient's noise:
//
//   losses.csv    step,samples,loss,learning_rate[,batch][,gradient_square,gradient_variance]
//   run.slip      tokens of a sequence, and the batch where it stays
//
// The norms are there where training.growth.rule was norm-test. Guarded by tests/command_growth_run_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/fit/measured_noise.h"

namespace slipway {

struct ExecutedRun {
  std::string folder;
  double sequence = 0;  // tokens
  bool has_norms = false;
  std::vector<GradientStep> steps;     // without norms these are 0
  std::vector<double> learning_rates;  // of each step

  double tokens() const;
  Interval batches() const;  // least and most, sequences
  Interval rates() const;
};

// Throws UsageError with file and line, and what to do: no such folder, no run in it, a cell that is no number, steps that do
// not follow each other.
ExecutedRun read_executed_run(const std::string& folder);

}  // namespace slipway
