// The idle gaps of every compute lane in the steady state (private to the filling pass).
//
//   lane   ... │0F0│0F1│░░░░░░│0B0│░░│0B1│O│░░░░░│ next step's 0F0 ...
//                      after=2    after=3   after=5: up to the first task of the next step
//
// Times are those of one step far from the start of the run, moved so that the earliest task starts at 0;
// the same gaps come again every `period_s`. Guarded by tests/fill_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/graph/replay.h"

namespace slipway {

struct Gap {
  std::uint32_t after = 0;  // tasks of the lane before it, in this step
  double begin = 0, end = 0;
};

struct SteadyStep {
  double period_s = 0;
  std::vector<double> end;  // per task
  std::vector<std::vector<Gap>>
      gaps;  // per rank, in time; the last one (of a rank with tasks) may be empty
};

SteadyStep steady_step(const TaskGraph& step, const Durations& durations);

}  // namespace slipway
