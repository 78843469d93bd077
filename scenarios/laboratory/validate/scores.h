// Scores of predictions against measurements, as pure functions.
//
//   APE    = |predicted / measured − 1|  its mean is MAPE; bias = mean of the signed error
//   ρ      = Spearman's rank correlation  1: the predictions order the runs as the measurements do
//   regret = 1 − measured MFU of the layout that is recommended / best measured MFU of its table
//   OOM    = verdict × truth  a layout called safe that ran out of memory is a false fit
//
// A run without a price counts as an error of 100 %; bias and ρ leave it out.
// Guarded by tests/scenarios/validation_test.cpp: closed forms by hand.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct TimePair {
  double predicted = 0;  // 0: could not be priced
  double measured = 0;   // > 0
};

struct TimeScore {
  int priced = 0, unpriced = 0;
  double mape = 0, median_ape = 0, bias = 0;  // percent; NaN without rows
};
TimeScore time_score(std::span<const TimePair> pairs);

// Spearman's ρ with mean ranks for ties; NaN for fewer than two pairs or where one side is constant.
double rank_correlation(std::span<const double> a, std::span<const double> b);

// One layout of a table, for choosing the best one.
struct TableLayout {
  double predicted_mfu = 0;  // 0: could not be priced, never chosen
  bool predicted_to_fit = true;
  double measured_mfu = 0;  // 0: it ran out of memory
};

struct Regret {
  double first = 0;          // regret of the fastest layout predicted to fit, 0..1; 1 when it ran out of memory
  double best_of_three = 0;  // regret of the best of the first three
  bool first_ran_out = false;
};
// Without a layout predicted to fit, the recommendation is empty and the regret 1. Ties keep their order. At least one
// layout must have been measured.
Regret regret_of(std::span<const TableLayout> table);

struct MemoryPair {
  bool predicted_to_fit = false, fitted = false;
};
struct Confusion {
  int true_fit = 0, true_oom = 0, false_fit = 0, false_oom = 0;
  int rows() const { return true_fit + true_oom + false_fit + false_oom; }
  double share_right() const;        // NaN without rows
  double share_of_safe_oom() const;  // share of the layouts called safe that ran out of memory; 0 without such layouts
};
Confusion confusion(std::span<const MemoryPair> pairs);

}  // namespace slipway::scenarios
