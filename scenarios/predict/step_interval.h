// The 90 % interval of a predicted step time: 90 of 100 measured runs are expected within it.
//
//   replay ──► critical path ──► d ln step / d ln c ──┐
//   covariance of the fitted constants ───────────────┴─► spread of the constants ─┐
//   what runs differ in beyond them (PooledConstants::row_spread) ─────────────────┼─► Student's t ──► low, high
//   settings outside the fitted runs ──────────────────────────────────────────────┤
//   GPUs without measured kernels ─────────────────────────────────────────────────┘
//
// A profile that `slipway calibrate` fitted replaces both: slopes by its numbers with their deviations, and the spread
// of tasks that the fit had not seen (Machine::deviations, Machine::spread).
// Guarded by tests/scenarios/step_interval_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/fit/pooled_fit.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/prepared_step.h"

namespace slipway::scenarios {

// Change of the step for a change of a constant, both in percent.
struct Sensitivity {
  std::string constant, machine, meaning;
  double slope = 0;
};

struct StepInterval {
  double low_s = 0, high_s = 0;
  // Standard deviations of ln(step): of the constants, of runs beyond them, of what lies outside the fitted runs, of
  // kernels taken from another GPU.
  double constants = 0, runs = 0, outside = 0, kernels = 0;
  std::vector<MachineSlopes> slopes;
  // For a calibrated profile: slopes by its fitted numbers, and the change of ln(step) along each direction of its fit.
  std::vector<Sensitivity> numbers;
  std::vector<double> directions;
  double half_width() const;  // of ln(step)
};

// The interval of a step that takes `step_s`. `outside`: number of settings outside the fitted runs (basis.h). Empty
// where neither fitted constants nor a calibrated profile price the step.
std::optional<StepInterval> step_interval(const PreparedStep& prepared, double step_s, std::size_t outside);
// Constants whose 1 % change moves the step by at least 0.01 %, largest first.
std::vector<Sensitivity> sensitivities(const StepInterval& interval);
// Probability that the first step is the faster one, of two layouts of one scenario.
double probability_faster(const Scenario& scenario, double step_s, const StepInterval& interval, double other_s,
                          const StepInterval& other);

// "6.22 to 8.31 s"
std::string interval_text(const StepInterval& interval);
// The note of a card with a prediction: "90 % interval: 6.22 to 8.31 s", or no_interval.
std::string interval_note(const std::optional<StepInterval>& interval);
inline constexpr const char* no_interval = "no interval: nothing was fitted for this machine";
// For the descriptions of answers with a step time.
const Description<StepInterval>& interval_keys();

}  // namespace slipway::scenarios
