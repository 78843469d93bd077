// The unknowns of a calibration as numbers θ in which durations are linear: costs, not rates.
//
//   gemm_efficiency 0.8  ⇄  θ = 1.25      node_link.bandwidth 10 GB/s  ⇄  θ = 1e-10 s/byte
//
// Each has a lower bound: an efficiency is at most 1 where the peak comes from a data sheet, and no memory
// or link of one rank is faster than 10 TB/s. Private to models/fit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/fit/calibration.h"

namespace slipway {

struct FitParameter {
  std::string name, unit;
  double guess = 0;                            // θ where the machine does not say; 0 where that means none
  double lowest = 0;                           // θ
  double scale = 0;                            // a small θ, for derivatives
  std::function<double(const Machine&)> cost;  // θ; 0 = the machine does not say
  std::function<void(Machine&, double)> set_cost;
  std::function<double(const Machine&)> value;  // as in the profile
};

// Messages, of which reductions add what arrives; not copies between host and GPU.
inline bool is_between_ranks(ObservationGroup group) {
  return group == ObservationGroup::node_link || group == ObservationGroup::network_link;
}

// In the order in which they are told apart: when two explain the same, the earlier one is fitted.
std::vector<FitParameter> parameters_of(ObservationGroup group, const Machine& start, bool with_reduction);

// Is the number itself to be fitted (a CPU, or not known), rather than an efficiency below it?
bool peak_is_free(const Machine& machine);

}  // namespace slipway
