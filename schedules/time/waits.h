// The cause of each wait in a timeline. A task waits for its inputs, its lane and tasks of the step before; the one
// that ended last is the cause.
//
//   rank 0   ┤ a ├────────┤ d ├     d needs c, and a must have left the lane.
//   pp            ┤  c  ├           c ended last: d waited for c
//
// A communicator is one lane on all of its members, so a communication has one cause, whichever member was last.
// Guarded by tests/schedules/waits_test.cpp.
#pragma once

#include <limits>
#include <vector>

#include "schedules/time/replay.h"

namespace slipway::schedules {

class Waits {
 public:
  // Requires graph.order. `graph` must outlive this.
  explicit Waits(const TaskGraph& graph);

  enum class Reason : std::uint8_t { input, lane, step_before };  // step_before: an input or the lane, of that step

  // Calls visit(step, task, reason) for each task that must have ended before this one begins; inputs come first.
  template <typename Visit>
  void each(std::size_t step, TaskId task, const Visit& visit) const {
    for (const TaskId before : graph_.predecessors[task]) visit(step, before, Reason::input);
    if (on_lane_[task] != nothing)
      visit(step, on_lane_[task], Reason::lane);
    else if (step > 0 && last_on_lane_[lane_of(task)] != nothing)
      visit(step - 1, last_on_lane_[lane_of(task)], Reason::step_before);
    if (step > 0)
      for (const TaskId before : carried_[task]) visit(step - 1, before, Reason::step_before);
  }

 private:
  static constexpr TaskId nothing = std::numeric_limits<TaskId>::max();
  std::size_t lane_of(TaskId task) const;

  const TaskGraph& graph_;
  std::vector<TaskId> on_lane_;       // per task: the one before it
  std::vector<TaskId> last_on_lane_;  // per rank, then per communicator
  Rows carried_;
};

struct CauseOfWait {
  TaskId task = 0;
  Waits::Reason reason = Waits::Reason::input;
  bool exists = false;  // false: nothing had to end before
};

// The cause of each task's wait in one step of the timeline. If several ended at one date, an input is the cause.
std::vector<CauseOfWait> causes_of_waits(const TaskGraph& graph, const Timeline& timeline, std::size_t step);

}  // namespace slipway::schedules
