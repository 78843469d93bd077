// A tiny list replay of schedule actions for tests: independent of the one in schedules/graph, so that the
// two can be compared. Time is an integer; every pass has its own length; messages take no time.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/action.h"

namespace slipway::test {

struct PassTimes {
  int forward = 1, backward = 1;
};

struct ReplayResult {
  bool finished = true;  // false: the lists wait for each other
  int makespan = 0;
  std::vector<int> busy;            // per rank
  std::vector<int> most_in_flight;  // per rank: forwards done minus backwards done, at its largest
};

// Sweeps over time steps: at each time, every idle rank starts its next action if what it needs is over.
inline ReplayResult replay_actions(const ActionLists& lists, PassTimes length) {
  using Key = std::tuple<bool, int, int>;  // is forward, stage, micro-batch
  std::map<Key, int> over;                 // when
  std::vector<std::size_t> next(lists.size(), 0);
  std::vector<int> free(lists.size(), 0), in_flight(lists.size(), 0);
  ReplayResult result{.finished = true, .makespan = 0, .busy = free, .most_in_flight = free};
  int last_stage = 0;
  std::size_t left = 0;
  for (const auto& list : lists) {
    left += list.size();
    for (const Action& action : list) last_stage = std::max(last_stage, action.stage);
  }
  int idle_for = 0;
  for (int now = 0; left > 0; ++now) {
    const auto is_over = [&](bool forward, int stage, int micro_batch) {
      const auto found = over.find({forward, stage, micro_batch});
      return found != over.end() && found->second <= now;
    };
    ++idle_for;
    for (std::size_t r = 0; r < lists.size(); ++r) {
      if (free[r] > now || next[r] == lists[r].size()) continue;
      const Action& a = lists[r][next[r]];
      const bool forward = a.pass == Pass::forward;
      const bool ready = forward
                             ? a.stage == 0 || is_over(true, a.stage - 1, a.micro_batch)
                             : is_over(true, a.stage, a.micro_batch) &&
                                   (a.stage == last_stage || is_over(false, a.stage + 1, a.micro_batch));
      if (!ready) continue;
      const int takes = forward ? length.forward : length.backward;
      over[{forward, a.stage, a.micro_batch}] = free[r] = now + takes;
      result.busy[r] += takes;
      result.makespan = std::max(result.makespan, now + takes);
      in_flight[r] += forward ? 1 : -1;
      result.most_in_flight[r] = std::max(result.most_in_flight[r], in_flight[r]);
      ++next[r];
      --left;
      idle_for = 0;
    }
    if (idle_for > 2 * (length.forward + length.backward))
      return {.finished = false, .makespan = now, .busy = {}, .most_in_flight = {}};
  }
  return result;
}

}  // namespace slipway::test
