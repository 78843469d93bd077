// The prediction errors of cases that a profile was not fitted to, beside those of a guess without any model.
//
//   predicted = the baseline's measured step × simulated step of the case / simulated step of the baseline
//   scaled    = the baseline's measured step × FLOPs of the case          / FLOPs of the baseline
//
// Both start from the baseline's measurement in the same rounds as the case's. A shared machine changes its speed
// within a minute, so only neighbouring measurements compare. At constant speed, predicted = simulated, as far as the
// profile fits its own baseline.
// Medians over rounds count. Half of the range between rounds stands beside each: a smaller error is no evidence about
// the model.
// Guarded by tests/scenarios/batch_report_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/namespaces.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct RunCase {
  std::string name;
  double simulated_s = 0;          // one step, by the profile
  std::vector<double> measured_s;  // one step, one value per round; not empty
  double flops_per_rank = 0;       // per step
  double half_width = 0;           // of the 90 % interval of ln(simulated_s); 0: the profile has none
};

struct ConfirmedCase {
  std::string name;
  double simulated_s = 0, predicted_s = 0, scaled_s = 0;
  double measured_s = 0;                // median over the rounds
  std::optional<double> spread;         // half of (slowest - fastest round) / measured_s; with two rounds or more
  std::optional<double> low_s, high_s;  // the 90 % interval around predicted_s, as wide as the simulated step's
  std::optional<bool> inside() const {
    return low_s ? std::optional(*low_s <= measured_s && measured_s <= *high_s) : std::nullopt;
  }
};

struct Confirmation {
  std::size_t rounds = 1;
  double baseline_simulated_s = 0, baseline_measured_s = 0;
  std::optional<double> baseline_spread;
  std::vector<ConfirmedCase> cases;
};

Confirmation confirmation_of(const RunCase& baseline, const std::vector<RunCase>& cases);

// The table, the machine's speed and the median errors. The last line is that of the median case:
// "predicted 0.412 s, measured 0.431 s, off by 4.4 %". For an even number of cases it is the larger of the middle two,
// so that the error is one case's own.
std::string confirmation_text(const std::string& baseline_name, const Confirmation& confirmation);

// The table of cases, headings first.
std::vector<std::vector<std::string>> case_rows(const Confirmation& confirmation);

// The same as JSON; the keys are beside it in the source.
std::string confirmation_json(const std::string& baseline_name, const Confirmation& confirmation);

// The keys of its --json.
std::vector<AnswerKeys> confirm_answers();

}  // namespace slipway::scenarios
