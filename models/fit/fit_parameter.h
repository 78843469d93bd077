// The unknowns of a calibration as numbers θ in which durations are linear: costs, not rates.
//
//   gemm_efficiency 0.8  ⇄  θ = 1.25      node_link.bandwidth 10 GB/s  ⇄  θ = 1e-10 s/byte
//
// Each has a lower bound: an efficiency is at most 1 where the peak comes from a data sheet, and no memory or link of
// one rank is faster than 10 TB/s. Private to models/fit. Guarded by tests/models/calibration_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/fit/calibration.h"

namespace slipway::models {

struct FitParameter {
  std::string name, unit;
  double guess = 0;                            // θ where the machine has no value; 0 if that means none
  double lowest = 0;                           // θ
  double scale = 0;                            // a small θ, for derivatives
  std::function<double(const Machine&)> cost;  // θ; 0 = the machine has no value
  std::function<void(Machine&, double)> set_cost;
  std::function<double(const Machine&)> value;  // as in the profile
};

// In order of preference: when two parameters explain the same, the earlier one is fitted.
std::vector<FitParameter> parameters_of(ObservationGroup group, const Machine& start, bool with_reduction);

// True if the number itself is fitted (a CPU, or unknown), not an efficiency below it.
bool peak_is_free(const Machine& machine);

}  // namespace slipway::models
