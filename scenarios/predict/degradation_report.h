// The cost of slow GPUs and ports for a step, and the ranks that wait for them. It compares the step with the same
// ranks, in the same order, on the healthy cluster. Guarded by tests/scenarios/degradation_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/prepared_step.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"

namespace slipway::scenarios {

// One pipeline rank in one periodic step, as means over its members.
struct StageWaiting {
  int stage = 0;
  double compute_s = 0;
  double waits_s = 0;          // the rest of the step
  double healthy_waits_s = 0;  // the same on the healthy cluster
  int slowest_rank = 0;        // among its members
  double slowdown = 1;         // that rank's GPU
};

struct DegradationCost {
  double step_s = 0, healthy_step_s = 0;
  std::vector<StageWaiting> stages;
  int slow_gpus = 0;   // holding ranks, and more than a thousandth slower than their profile
  int slow_ports = 0;  // ports of GPUs that hold ranks
  double lost_s() const { return step_s - healthy_step_s; }
};

// Both timelines are of `prepared.graph` with the same number of steps. `step_s`: step_time_s of the first one.
DegradationCost degradation_cost(const PreparedStep& prepared, double step_s, const Timeline& timeline,
                                 const Timeline& healthy);
const Description<DegradationCost>& degradation_cost_keys();
std::string degradation_text(const DegradationCost& cost);

}  // namespace slipway::scenarios
