// The main answer: how long a step takes, where its time goes, and whether it fits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "slipway/scenario.h"

namespace slipway {

// For work that takes long. Both are called by the calling thread, `interrupted` by others too.
struct Watch {
  std::function<void(double share)> progress;  // 0 to 1, of the part of the work that runs
  std::function<bool()> interrupted;           // true ends the work with Interrupted
};

// 90 of 100 measured runs are expected in it. Seconds.
struct Interval {
  double low_s = 0, high_s = 0;
};

// Memory of the fullest rank of one pipeline rank, in bytes.
struct StageMemory {
  int pipeline_rank = 0, rank = 0;
  double peak = 0;  // of the simulated timeline: the sum of the four below
  double weights = 0, gradients = 0, optimizer = 0, activations = 0;
  std::string peak_task;                            // during which it is reached
  double needs = 0, needs_low = 0, needs_high = 0;  // with what trainers take besides: median and 90 % of runs
  double capacity = 0;                              // of its GPU
  double fit_probability = 0;
};

// The tasks of one step, a row for each rank that takes part. Columns of equal length.
struct Timeline {
  std::vector<std::int32_t> rank, task;  // task: its number in TaskGraph::tasks
  std::vector<double> start_s, end_s;    // from the start of the step
};

struct Prediction {
  std::string scenario;
  double step_time_s = 0;
  std::optional<Interval> interval;  // where fitted constants price the step
  double makespan_s = 0;             // of one step alone
  double tokens_per_s = 0;
  double mfu = 0;                                                      // 0 to 1; 0: no peak is known
  double compute_share = 0, exposed_comm_share = 0, bubble_share = 0;  // of the step, mean over ranks
  std::vector<StageMemory> memory;                                     // by pipeline rank
  double fit_probability = 1;                                          // of the rank that is least likely to fit
  bool fits = true;                                                    // more likely than not
  std::optional<double> training_days, training_gpu_hours;             // with run.tokens
  std::string rests_on;              // what it was fitted to, and which settings lie outside; may be empty
  std::optional<Timeline> timeline;  // of all ranks that are simulated, with PredictOptions::timeline
};

struct PredictOptions {
  bool timeline = false;
  bool all_ranks = false;  // else one rank stands for those that do the same at the same time
  int steps = 3;           // back to back; the step time is the period of the last two
  Watch watch;
};

// Simulates the step. Equal scenarios give equal bytes, from any thread. Each simulation runs in a forked child.
Prediction predict(const Scenario& scenario, const PredictOptions& options = {});

}  // namespace slipway
