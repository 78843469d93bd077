// Why a step takes as long as it does, and what would make it faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "slipway/predict.h"

namespace slipway {

// One kind of work or of waiting, in seconds of a step.
struct SpentOn {
  std::string part;
  double rank_s = 0;  // mean over ranks
  double path_s = 0;  // on the critical path
};

// A rate of the machine, twice as fast.
struct FasterRate {
  std::string name, id;
  double step_s = 0, change = 0;  // without contention; change: of that step, negative is faster
};

// One change of the scenario, tried alone.
struct Lever {
  std::string name;
  std::vector<std::string> settings;  // "KEY=VALUE"; habits of a trainer in words
  double step_s = 0, gain = 0;        // gain: share of the step that it saves
  bool simulated = false;             // false: step_s is a lower bound, which was enough
  double memory_bytes = 0, fit_probability = 0;
  std::string why_not;  // it cannot be tried; all numbers are 0
};

// A rate that alone would explain a measurement.
struct Cause {
  std::string name, id;
  double speed = 0;      // of the rate, 1: as predicted; 0: no speed explains it
  double deviation = 0;  // |ln speed| in standard deviations of that rate: small is likely
};

struct Explanation {
  double step_time_s = 0;
  std::optional<Interval> interval;
  std::vector<SpentOn> spent;
  std::vector<FasterRate> faster;  // the largest change first
  std::vector<Lever> levers;       // those that fit first, the largest gain first
  std::vector<Cause> causes;       // of the measured step, the likeliest first
  std::optional<bool> inside;      // the measured step is inside the interval
};

struct ExplainOptions {
  std::optional<double> measured_s;  // a step that was measured
  int workers = 0;
  Watch watch;
};

Explanation explain(const Scenario& scenario, const ExplainOptions& options = {});

}  // namespace slipway
