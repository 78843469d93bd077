// A trace's tasks beside those of its prediction, each with both durations (private to trace_causes.cpp).
//
//   compute   one observation for each rank and task
//   message   one for each group and task: all members end it together
//
// Guarded by tests/scenarios/explain_trace_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/predict/simulated_step.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

struct Observation {
  TaskId task = 0;   // of the predicted graph: the rank's own, or that of its representative
  int rank = 0;      // of a message: its first member with a record
  int group = none;  // of the trace; none: compute
  double predicted_s = 0, measured_s = 0;
};

struct Observations {
  std::vector<Observation> all;
  std::map<int, std::vector<int>> members;  // of each group: its ranks, ascending
  std::int64_t records = 0, missing = 0;    // records of the counted steps, and those that have no predicted task
};

// Seconds of each task in the step that stands for the timeline (measured_step); a message from its last member's start.
std::vector<double> seconds_of_tasks(const TaskGraph& graph, const Timeline& timeline);
// Throws std::invalid_argument when no task is in both.
Observations observations_of(const SimulatedStep& predicted, const Trace& measured);

}  // namespace slipway::scenarios
