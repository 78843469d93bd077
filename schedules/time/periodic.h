// A step of thousands of micro-batches as the same schedule with fewer micro-batches: periodic steps.
//
//   rank 0   F F F│F B F B F B F B ... F B F B│B B B        warm-up │ periods │ cool-down
//   rank 1   F F│F B F B F B F B ... F B F B F B│B B
//                    └┬┘ a period: `period` micro-batches forward and backward
//
// Periods are found in the action lists, so this works for every schedule, also imported ones, or not at all (GPipe).
// Whole periods are left out, the same number on every rank; later micro-batches move up. A rank's periods begin after
// the first micro-batch and end before the last, because these are lowered differently.
// Guarded by tests/schedules/periodic_test.cpp: the result is what the schedule gives for fewer micro-batches.
#pragma once

#include <optional>

#include "schedules/step/action.h"
#include "schedules/time/durations.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

struct PeriodicActions {
  ActionLists actions;
  int micro_batches = 0;  // remaining ones
  int period = 0;         // micro-batches
  int left_out = 0;       // periods; a multiple of `period_multiple`
};

// The number of left-out periods is a multiple of this. So it is whole periods of time also where a timeline repeats
// only every 2, 3 or 4 periods of the actions.
constexpr int period_multiple = 12;

// More `patience` (1, 2, ...) keeps more periods, in which dates may settle: about `patience` times what the pipeline
// takes to fill twice. Returns nothing when the lists do not repeat, or less than a third could be left out.
std::optional<PeriodicActions> periodic_actions(const ActionLists& lists, int micro_batches, int patience);

// The period of a timeline: with it, a step with more periods is longer by exactly that much.
//
//   rank 0 lane   ...|FB|FB|FB|·BB                 T: the first date at which some lane runs out of periods
//   pp lane       ..| s  | s  | s                  before T, for several periods, every task of every lane starts and
//   rank 1 lane   ....|FB|FB|FB|FBB                ends as long after its twin of the period before: period_s
//                         └──┘ T
//
// What the machine does from T on depends only on what it did in that last period, and the same would follow from
// T − period_s. So with one more period of the schedule, everything after T is period_s later; by induction for any
// number. Where a shared flow or a slowly filling queue breaks the period, dates do not repeat and there is no result.
// Nor is there one where a host takes longer to issue a period than the period itself: its lead would be used up later.
// Guarded by tests/scenarios/simulated_step_test.cpp: periodic steps against whole ones.

struct PeriodicTimeline {
  int micro_batches = 0;  // in a period of the timeline: 1, 2, 3 or 4 periods of the actions
  int left_out = 0;       // such periods
  double period_s = 0;
  struct Stretch {
    std::uint32_t first = 0, last = 0;
  };
  struct Step {
    double until_s = 0;            // T; the whole step has what starts later left_out · period_s later
    std::vector<Stretch> compute;  // per rank: one period, as places in its row of compute_order
  };
  std::vector<Step> steps;
  double left_out_s() const { return left_out * period_s; }  // per step
};

// `graph` was lowered from `actions`. Every step of the timeline must repeat, and so must the list replay that made the
// global order; else a longer step would be ordered differently.
std::optional<PeriodicTimeline> periodic_timeline(const TaskGraph& graph, const Durations& durations,
                                                  const PeriodicActions& actions, const Timeline& timeline);

}  // namespace slipway::schedules
