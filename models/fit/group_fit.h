// The fit of one group of observations that share parameters (compute; one kind of link). Private to
// models/fit; see calibration.h for the method.
#pragma once

#include <span>
#include <vector>

#include "models/fit/fit_parameters.h"
#include "models/fit/robust.h"

namespace slipway {

struct FitRow {
  const Observation* observation = nullptr;
  double seconds = 0;  // measured, what overlap added taken off
  double weight = 1;
};

struct GroupFit {
  Machine machine;
  std::vector<FittedParameter> parameters;
};

// `searches_half`: gemm_half is an unknown too (the compute group).
GroupFit fit_group(const Machine& start, std::span<const FitParameter> parameters,
                   std::span<const FitRow> rows, bool searches_half);

}  // namespace slipway
