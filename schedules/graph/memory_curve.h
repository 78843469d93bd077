// A rank's memory over one step of a timeline, as the executor's meter would read it (exec/memory_meter.h): when a task is
// over, and the most while it ran.
//
//   bytes │      ┌────┐            at one date first what ends is given back, then what starts is taken
//         │  ┌───┘    └──┐
//         └──┴───────────┴── weights, gradients, optimizer ──► time
//
// What lives from one step to the next beside these is not seen. Guarded by tests/memory_curve_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "schedules/graph/buffer_lives.h"

namespace slipway {

class MemoryCurve {
 public:
  struct Use {
    double at_end = 0, most = 0;  // bytes
  };

  // `buffers`: those of the rank that take memory. `fixed`: bytes that it holds all the time.
  MemoryCurve(const TaskGraph& graph, const BufferLives& lives, std::span<const BufferId> buffers, double fixed);

  // Of a task from `start` to `end`, seconds of the timeline.
  Use during(double start, double end) const;

 private:
  struct Point {
    double time = 0;
    double given_back = 0, taken = 0;  // bytes then, before and after what starts at `time`
  };
  double fixed_;
  std::vector<Point> points_;  // ascending times
};

}  // namespace slipway
