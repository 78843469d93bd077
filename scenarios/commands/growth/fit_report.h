// The answer of `slipway growth --fit`: loss and noise scale of measured curves, their uncertainty, and the error for a
// batch size that the fit has not seen. Guarded by tests/scenarios/growth_fit_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/fit/loss_curves.h"
#include "scenarios/commands/growth/curves_file.h"
#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

struct FitRequest {
  CurveAssumptions assumed;
  double from_tokens = 0;             // earlier losses do not count
  std::optional<double> target_loss;  // unset: the lowest loss that every run reaches
};

// Means over left-out batch sizes with a prediction.
struct LeftOutErrors {
  double predicted = 0, constant = 0;  // means of |predicted/measured − 1| and |constant/measured − 1|
};

struct FitAnswer {
  CurvesFile file;  // the rows that count
  CurveAssumptions assumed;
  double target_loss = 0;
  DynamicsFit fit;
  std::vector<OneRate> by_rate;
  std::vector<LeftOutBatch> left_out;
  std::optional<LeftOutErrors> errors;
  // The interval of the noise scale in tokens. It includes the intervals of the fits of one learning rate, and the
  // values of rates with an unknown interval. Unset where the fit's own interval is unknown.
  std::optional<Interval> noise_range;
};

// The lowest loss that every run reaches.
double reached_by_all(const std::vector<LossCurve>& curves);

// Throws UsageError where the curves cannot be fitted, and for a target that no run reaches.
FitAnswer fitted_curves(CurvesFile file, const FitRequest& request);

std::string fit_text(const FitAnswer& answer);
// The description of --json.
const Description<FitAnswer>& fit_description();

}  // namespace slipway::scenarios
