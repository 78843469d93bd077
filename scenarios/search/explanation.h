// The answer of `slipway explain` as plain data: why a step takes as long as it does, and what would make it faster.
//
//   scenario ─┬─ simulation ──► step, interval, memory ──► where a GPU's time goes
//             ├─ replay ──────► critical path; each rate of the machine twice as fast      (moved_step.h)
//             ├─ levers ──────► each alone, simulated, with memory                          (lever_trials.h)
//             ├─ a measured step ──► inside the interval? causes                            (causes.h)
//             └─ a trace ──────────► the cause, task by task                                (trace_causes.h)
//
// Guarded by tests/scenarios/explain_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/step_interval.h"
#include "scenarios/predict/verdict.h"
#include "scenarios/search/causes.h"
#include "scenarios/search/lever_trials.h"
#include "scenarios/search/trace_causes.h"

namespace slipway::scenarios {

// One kind of work or of waiting; 0 where it takes no time.
struct SpentOn {
  std::string part;
  double rank_s = 0, path_s = 0;  // of a GPU, on the critical path
};

// A rate twice as fast.
struct FasterRate {
  std::string name, id;
  double step_s = 0, change = 0;  // replayed; of the replayed step, negative: faster
};

struct Explanation {
  std::string scenario, headline;
  double step_s = 0, replayed_s = 0;  // simulated; without contention
  double tokens_per_s = 0, mfu = 0;
  std::optional<StepInterval> interval;
  Verdict verdict;
  Basis basis;
  std::vector<SpentOn> spent;      // only parts that take time
  std::vector<FasterRate> faster;  // the largest change first
  std::vector<LeverTrial> levers;  // as lever_trials sorts them
  bool all_levers_tried = true;    // false: interrupted
  std::optional<MeasuredStep> measured;
  std::optional<TraceFindings> trace;
};

struct ExplainOptions {
  std::optional<double> measured_s;
  const Trace* trace = nullptr;
  LeverOptions levers;
  std::function<void(const std::string& doing, double share)> progress;  // of the whole, when a part of it begins
};

// Throws UsageError for a scenario that cannot be simulated, and for a trace of another scenario; SimulationInterrupted
// where levers.interrupted says so before the levers.
Explanation explanation_of(const Scenario& scenario, const ExplainOptions& options);

}  // namespace slipway::scenarios
