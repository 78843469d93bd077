// Does a timeline repeat, so that a step with more periods in it is as much longer?
//
//   rank 0 lane   ...|FB|FB|FB|·BB                 T: the first date at which some lane runs out of periods
//   pp lane       ..| s  | s  | s                  before T, for several periods, every task of every lane starts and
//   rank 1 lane   ....|FB|FB|FB|FBB                ends as long after its twin of the period before: period_s
//                         └──┘ T
//
// Then all that the machine does from T on depends only on what it did in that last period, and the same would follow
// from T − period_s: one more period of the schedule, and everything after T is period_s later, by induction for any
// number. Where a shared flow or a slowly filling queue breaks the period, dates do not repeat and there is no answer.
// Guarded by tests/simulated_step_test.cpp: shortened steps against whole ones.
#pragma once

#include <optional>

#include "schedules/graph/replay.h"
#include "schedules/graph/shortened.h"

namespace slipway {

struct SteadyState {
  int micro_batches = 0;  // of a period of the timeline: 1, 2, 3 or 4 periods of the actions
  int left_out = 0;       // such periods
  double period_s = 0;
  struct Stretch {
    std::uint32_t first = 0, last = 0;
  };
  struct Step {
    double until_s = 0;             // T; what starts later is left_out · period_s later in truth
    std::vector<Stretch> compute;   // per rank: one period, as places in its row of compute_order
  };
  std::vector<Step> steps;
  double left_out_s() const { return left_out * period_s; }  // of each step
};

// `graph` was lowered from `actions`. Every step of the timeline must repeat, and so must the list replay that made
// the global order (else a longer step would be ordered differently).
std::optional<SteadyState> steady_state(const TaskGraph& graph, const Durations& durations,
                                        const ShortenedActions& actions, const Timeline& timeline);

}  // namespace slipway
