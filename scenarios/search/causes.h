// Possible causes of the difference between a measured and a predicted step: for each rate of the machine, the value
// that would explain it alone.
//
//   measured 3.1 s ──for each rate: the speed at which the replay takes as long──► deviation = |ln speed| / spread
//   predicted 2.3 s                                                                smallest first: what differs most easily
//
// One pipeline rank's GPUs are a cause too: the step waits for the slowest stage.
// Guarded by tests/scenarios/explain_command_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/moved_step.h"

namespace slipway::scenarios {

struct Cause {
  std::string name, id;
  double speed = 0;      // of the rate, 1: as predicted; 0: no speed explains it
  double deviation = 0;  // |ln speed| in spreads of the rate
};
// "at 42 % of its predicted speed", "1.31 times as fast as predicted".
std::string speed_text(double speed);

struct MeasuredStep {
  double step_s = 0;
  bool has_interval = false, inside = false;
  bool causes_sought = true;           // false: interrupted
  std::vector<Cause> causes;           // the smallest deviation first
  std::vector<std::string> no_causes;  // names of rates that cannot explain it alone
};

// `predicted_s`: the simulated step. The replay is moved by as much as the measurement is off.
MeasuredStep measured_step(MovedStep& step, double predicted_s, double measured_s,
                           const std::optional<std::pair<double, double>>& interval,
                           const std::function<bool()>& interrupted = {});

// "2.31 s", "12,000 tokens/s", "410 TFLOP/s" (per GPU, as Megatron-LM counts) as seconds of a step. Throws UsageError.
double seconds_of_measurement(const std::string& text, const Scenario& scenario);

}  // namespace slipway::scenarios
