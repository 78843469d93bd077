// How long a step of each batch takes that a layout and schedule can run.
//
//   rungs       batches that the layout and schedule can run (rungs.h)
//   simulated   a few of them, evenly on a logarithmic scale, with the ends and the stages' batches
//   between     a step grows by a constant per micro-batch once the pipeline is full, so times lie on a
//               line; line_error says how far it would miss a rung, had that one been left out
//
// The layout is that of the scenario throughout: a trainer keeps it when the batch grows.
// Guarded by tests/scenarios/growth_ladder_test.cpp.
#pragma once

#include <functional>
#include <vector>

#include "scenarios/simulate/prediction.h"

namespace slipway::scenarios {

// At most `count` (≥ 2) of the rungs, evenly on a logarithmic scale, besides `also`, which are rungs; the first and the last
// among them.
std::vector<std::int64_t> some_rungs(const std::vector<std::int64_t>& rungs, const std::vector<std::int64_t>& also,
                                     int count);

struct RungStep {
  std::int64_t batch = 0;
  int micro_batches = 0;  // per pipeline
  double step_s = 0, tokens_per_s = 0, mfu = 0;
  bool fits = true;  // the verdict on memory (scenarios/step/verdict.h)
};

// `progress`, which may be empty: share that is done, and of which batch.
std::vector<RungStep> simulated_rungs(const Scenario& scenario, const std::vector<std::int64_t>& batches,
                                      const std::function<void(double, std::int64_t batch)>& progress = {});

// Seconds of a step of this batch, on the line between its neighbours.
double step_time_between(const std::vector<RungStep>& rungs, std::int64_t batch);
// The most that a rung between two others is off their line, of its time; 0 with fewer than three.
double line_error(const std::vector<RungStep>& rungs);

}  // namespace slipway::scenarios
