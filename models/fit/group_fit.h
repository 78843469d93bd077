// The fit of one group of observations that share parameters (compute; one kind of link); calibration.h has the method.
// Private to models/fit. Guarded by tests/models/calibration_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "models/fit/fit_parameter.h"

namespace slipway::models {

struct FitRow {
  const Observation* observation = nullptr;
  double seconds = 0;  // measured, without the time that overlap added
  double weight = 1;
};

struct GroupFit {
  Machine machine;
  std::vector<FittedParameter> parameters;
};

// `searches_half`: gemm_half is an unknown too (the compute group).
GroupFit fit_group(const Machine& start, std::span<const FitParameter> parameters, std::span<const FitRow> rows,
                   bool searches_half);

}  // namespace slipway::models
