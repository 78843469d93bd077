// Useful work in the bubbles of any scheduled graph (Osawa et al. 2022, PipeFisher). The pass does not depend on K-FAC.
//
//   before    rank 0 │ 0F0 0F1  .    .   0B0 0B1 │          items: typed tasks with a duration, a priority and
//   after     rank 0 │ 0F0 0F1  A0  A1   0B0 0B1 │ B0 ...   dependencies on tasks of the step and on groups
//
// The gaps of every compute lane are those of the periodic steps in a list replay. They are walked in time, over all
// ranks at once. Each moment takes the first ready item: lowest priority value, then longest, then as listed. The item
// is placed if its duration times `margin` is less than what is left of the gap. Communications (a reduction of
// factors, a message) take no gap: they run on separate communicators as soon as they can. Remaining items go to the
// gaps of the next steps. When a whole step places nothing more, the rest runs behind the last step. The steps used are
// the graph's window (schedules/lower/graph_builder.h): the interval between refreshes.
//
// Invariants (check_filling; each has a test that breaks it):
//   I10  every item is a task of the window exactly once, and the tasks of each step are those of the unfilled step
//   I11  an item starts after the tasks and groups that it names
//   I12  the window takes at most as long as the same number of unfilled steps and what runs behind the last of them
// The assignment is part of the lane order (compute_order), so both engines run it unchanged.
// Guarded by tests/schedules/fill_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/check/check.h"
#include "schedules/time/durations.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

// A group is a set of items that others wait for as a whole.
using BubbleGroup = int;

struct BubbleTask {
  Task task;  // of kind bubble_work: on its rank's lane; transfer or collective: communicator and work are
              // indices in BubbleWork
  double seconds = 0;
  int priority = 0;
  BubbleGroup group = 0;
  std::vector<TaskId> after;  // tasks of the window's first step
  std::vector<BubbleGroup> after_groups;
  std::vector<int> reads;  // indices in BubbleWork::kept
};

// Bytes that exist until `from` ends anyway; they then stay to the end of the last item that reads them.
// With from_item: bytes that this item makes on `rank`. If no item reads them, this one holds them while it runs. With
// from_group: the group's first item on the rank's lane makes them.
struct KeptTensor {
  TaskId from = 0;  // of the window's first step
  double bytes = 0;
  int from_item = none;
  std::int32_t rank = none;
  BubbleGroup from_group = none;
};

struct BubbleWork {
  std::string name;  // "kfac"
  std::vector<Work> works;
  std::vector<Communicator> communicators;
  std::vector<BubbleTask> items;
  std::vector<KeptTensor> kept;
  std::vector<double> static_bytes;  // per rank, held throughout; empty: none
  int groups = 0;
};

struct FillOptions {
  double margin = 1.05;     // factor on an item's duration that must fit into the gap (Osawa et al. 2022)
  bool use_bubbles = true;  // false: everything runs behind the last step of a window of `steps`
  int steps = 1;
  int most_steps = 10000;
};

struct RankFilling {
  double pass_s = 0;         // passes (forward, backward, recomputation) of one step
  double end_s = 0;          // norm, preconditioning and optimizer of one step
  double bubble_work_s = 0;  // all items of a window
  double behind_s = 0;       // part of bubble_work_s that found no gap
  int steps = 1;             // steps of the window that this rank's items needed
};

struct Filling {
  TaskGraph graph;  // the window, ordered
  Durations durations;
  double period_s = 0;         // seconds of an unfilled step
  double window_period_s = 0;  // seconds of the filled window
  std::vector<RankFilling> ranks;
};

// Requires an ordered, sound `step` and `durations` of its tasks in seconds. Throws std::invalid_argument for items
// that wait for each other in a circle, or whose rank or communicator does not exist.
Filling fill(const TaskGraph& step, const Durations& durations, const BubbleWork& bubble_work,
             const FillOptions& options = {});

// Share of the pipeline's time (a step without what end_s counts) in which ranks compute; means over ranks.
struct Utilization {
  double before = 0, after = 0;
  double ceiling = 0;     // all items within the fewest steps whose bubbles could hold them; `before` if none could
  int ceiling_steps = 1;  // 0: there is no bubble
  double own_cycles = 0;  // if every rank repeated its items after the number of steps that it needs itself
};
Utilization utilization_of(const Filling& filling);

// The invariants above as violations 10 to 12.
std::vector<Violation> check_filling(const TaskGraph& step, const BubbleWork& bubble_work, const Filling& filling);

// The idle gaps of every compute lane in periodic steps (private to the filling pass).
//
//   lane   ... │0F0│0F1│░░░░░░│0B0│░░│0B1│O│░░░░░│ next step's 0F0 ...
//                      after=2    after=3   after=5: up to the first task of the next step
//
// Times are those of one step far from the start of the run, shifted so that the earliest task starts at 0. The same
// gaps return every `period_s`. Guarded by tests/schedules/fill_test.cpp.

struct Gap {
  std::uint32_t after = 0;  // tasks of the lane before the gap, in this step
  double begin = 0, end = 0;
};

struct PeriodicStep {
  double period_s = 0;
  std::vector<double> end;             // per task
  std::vector<std::vector<Gap>> gaps;  // per rank, in time; the last gap of a rank with tasks may be empty
};

PeriodicStep periodic_step(const TaskGraph& step, const Durations& durations);

}  // namespace slipway::schedules
