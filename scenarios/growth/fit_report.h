// What `slipway growth --fit` answers: the loss and the noise scale of measured curves, how sure they are,
// and how far a batch size that the fit has not seen is off. Guarded by tests/command_growth_fit_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/growth/curves_file.h"

namespace slipway {

struct FitRequest {
  CurveAssumptions assumed;
  std::optional<double> target_loss;  // unset: the lowest that every run reaches
};

struct FitAnswer {
  CurvesFile file;
  CurveAssumptions assumed;
  double target_loss = 0;
  DynamicsFit fit;
  std::vector<OneRate> by_rate;
  std::vector<LeftOutBatch> left_out;
  // Means of |predicted/measured − 1| and |constant/measured − 1| over left-out batch sizes.
  double predicted_error = 0, constant_error = 0;
  // Of the noise scale, tokens: its interval and the fits of one learning rate.
  std::optional<Interval> noise_range;
};

// Throws UsageError where the curves cannot be fitted.
FitAnswer fitted_curves(CurvesFile file, const FitRequest& request);

std::string fit_text(const FitAnswer& answer);
std::string fit_json(const FitAnswer& answer);

}  // namespace slipway
