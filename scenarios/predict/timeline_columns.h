// The tasks of a simulated step as columns of one length, for programs that compute with them.
// Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/predict/description.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {

// One place each per task and member rank, in order of rank, lane and start.
struct TimelineColumns {
  std::vector<int> rank;
  std::vector<std::string> lane, task, kind;
  std::vector<int> stage, micro_batch;
  std::vector<double> start_s, end_s, wait_s, flops, bytes, memory_bytes, memory_peak_bytes;
};

// The last step, on the ranks that the graph has: all, or the representative ranks.
TimelineColumns timeline_columns(const TaskGraph& graph, const Timeline& timeline);
const Description<TimelineColumns>& timeline_keys();

}  // namespace slipway::scenarios
