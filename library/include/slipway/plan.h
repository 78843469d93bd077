// The fastest layouts of a model on a cluster that fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slipway/predict.h"

namespace slipway {

struct PlannedLayout {
  Settings settings;  // scenario.with(settings) is this layout
  double step_time_s = 0;
  std::optional<Interval> interval;
  double mfu = 0, compute_share = 0, exposed_comm_share = 0, bubble_share = 0;
  double memory_bytes = 0;  // what 99 % of needs stay below, on the rank that is least likely to fit
  double memory_share = 0;  // of that rank's GPU
  double fit_probability = 0;
  std::optional<double> first_is_faster;  // probability that the first row is faster than this one
};

struct Plan {
  std::vector<PlannedLayout> best;       // fastest first
  std::vector<PlannedLayout> front;      // fastest first, each with less memory than all before
  std::optional<PlannedLayout> closest;  // where nothing fits: the one that needs the least
  std::vector<std::string> remedies;     // and what would make one fit, in words
  std::int64_t legal = 0, too_large = 0, simulated = 0;
  bool complete = true;  // false: interrupted, the answer is the best so far
};

struct PlanOptions {
  std::vector<std::string> keep;  // keys that stay as the scenario has them, "layout.tensor"
  int top = 10;
  double memory_share = 1;  // of a GPU's memory
  int workers = 0;          // processes; 0: one a core
  Watch watch;              // `interrupted` does not throw: Plan::complete
};

// Searches every legal layout. With a caller's schedule only that one is searched. Throws Refusal.
Plan plan(const Scenario& scenario, const PlanOptions& options = {});

}  // namespace slipway
