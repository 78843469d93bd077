// Step times of all batches that a layout and schedule can run.
//
//   rungs       batches that the layout and schedule can run (rule.h)
//   simulated   a few of them, evenly on a logarithmic scale, with the ends and the stages' batches
//   between     on a line: once the pipeline is full, a step grows by a constant per micro-batch.
//               line_error is the error of that line at a rung, if the rung had been left out
//
// The layout is always the scenario's: a trainer keeps it when the batch grows.
// Guarded by tests/scenarios/growth_ladder_test.cpp.
#pragma once

#include <functional>
#include <vector>

#include "scenarios/predict/prediction.h"

namespace slipway::scenarios {

// At most `count` (≥ 2) of the rungs, evenly on a logarithmic scale, with the first and the last; besides these, the
// rungs in `also`.
std::vector<std::int64_t> some_rungs(const std::vector<std::int64_t>& rungs, const std::vector<std::int64_t>& also,
                                     int count);

struct RungStep {
  std::int64_t batch = 0;
  int micro_batches = 0;  // per pipeline
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  bool fits = true;  // the memory verdict (scenarios/predict/verdict.h)
  std::optional<double> step_low_s = {},
                        step_high_s = {};  // 90 % interval of the step (scenarios/predict/step_interval.h)
};

// `progress` (may be empty) gets the share done and the current batch.
std::vector<RungStep> simulated_rungs(const Scenario& scenario, const std::vector<std::int64_t>& batches,
                                      const std::function<void(double, std::int64_t batch)>& progress = {});

// Seconds of a step of this batch, on the line between its neighbours.
double step_time_between(const std::vector<RungStep>& rungs, std::int64_t batch);
// The largest error of the line at a rung between two others, as a share of its time; 0 with fewer than three rungs.
double line_error(const std::vector<RungStep>& rungs);

}  // namespace slipway::scenarios
