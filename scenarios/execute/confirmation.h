// How well a profile predicts cases that it was not fitted to, beside what one learns without any model.
//
//   predicted = the baseline's measured step × simulated step of the case / simulated step of the baseline
//   scaled    = the baseline's measured step × FLOPs of the case          / FLOPs of the baseline
//
// Both start from the same measurement of the baseline, taken in the same rounds as the case's: a machine
// that others use as well changes its speed within a minute, and only what happened side by side compares.
// With one machine at one speed, predicted = simulated, as far as the profile fits its own baseline.
// Of several rounds medians count, and half of the range between them is told beside each: an error that is smaller
// than that says nothing of the model.
// Guarded by tests/scenarios/batch_report_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct RunCase {
  std::string name;
  double simulated_s = 0;          // one step, by the profile
  std::vector<double> measured_s;  // one step, one value per round; not empty
  double flops_per_rank = 0;       // of a step
};

struct ConfirmedCase {
  std::string name;
  double simulated_s = 0, predicted_s = 0, scaled_s = 0;
  double measured_s = 0;         // median over the rounds
  std::optional<double> spread;  // half of (slowest - fastest round) / measured_s; of two rounds and more
};

struct Confirmation {
  std::size_t rounds = 1;
  double baseline_simulated_s = 0, baseline_measured_s = 0;
  std::optional<double> baseline_spread;
  std::vector<ConfirmedCase> cases;
};

Confirmation confirmation_of(const RunCase& baseline, const std::vector<RunCase>& cases);

// The table, the machine's speed, the median errors; the last line is
// "predicted 0.412 s, measured 0.431 s, off by 4.4 %" of the median case. Of an even number of cases the
// larger of the middle two counts, so that the error is one case's own.
std::string confirmation_text(const std::string& baseline_name, const Confirmation& confirmation);

// The same as JSON.
std::string confirmation_json(const std::string& baseline_name, const Confirmation& confirmation);

}  // namespace slipway::scenarios
