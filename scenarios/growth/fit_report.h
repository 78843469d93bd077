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
  double from_tokens = 0;             // losses before do not count
  std::optional<double> target_loss;  // unset: the lowest that every run reaches
};

// Means over left-out batch sizes that have a prediction.
struct LeftOutErrors {
  double predicted = 0, constant = 0;  // of |predicted/measured − 1| and |constant/measured − 1|
};

struct FitAnswer {
  CurvesFile file;  // what counts of it
  CurveAssumptions assumed;
  double target_loss = 0;
  DynamicsFit fit;
  std::vector<OneRate> by_rate;
  std::vector<LeftOutBatch> left_out;
  std::optional<LeftOutErrors> errors;
  // Of the noise scale, tokens: its interval joined with those of the fits of one learning rate, and with
  // the value of a rate whose interval is unknown; unknown where its own is.
  std::optional<Interval> noise_range;
};

// The lowest loss that every run reaches.
double reached_by_all(const std::vector<LossCurve>& curves);

// Throws UsageError where the curves cannot be fitted, and for a target that no run reaches.
FitAnswer fitted_curves(CurvesFile file, const FitRequest& request);

std::string fit_text(const FitAnswer& answer);
std::string fit_json(const FitAnswer& answer);

}  // namespace slipway
