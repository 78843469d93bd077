// A tiny list replay of schedule actions for tests, independent of schedules/draw/unit_times.cpp, so that the two can
// be compared. Time is an integer; every pass has its own length; messages take no time.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/step/action.h"

namespace slipway::test {

struct PassTimes {
  int forward = 1, backward = 1, input_grad = 1, weight_grad = 1;
  int of(Pass pass) const {
    return pass == Pass::forward      ? forward
           : pass == Pass::backward   ? backward
           : pass == Pass::input_grad ? input_grad
                                      : weight_grad;
  }
  int longest() const { return std::max({forward, backward, input_grad, weight_grad}); }
};

struct ReplayResult {
  bool finished = true;  // false: the lists wait for each other
  int makespan = 0;
  std::vector<int> busy;            // per rank
  std::vector<int> idle;            // per rank: between its first start and its last end
  std::vector<int> most_in_flight;  // per rank: forwards done minus backwards (weight gradients) done, at its
                                    // largest
};

// Sweeps over time steps: at each time, every idle rank starts its next action if its inputs exist. A pair
// (Action::with_next) is one action that takes the time of both and ends both.
// `parts`: stages of one copy of the model; 0: all named stages are one copy.
inline ReplayResult replay_actions(const ActionLists& lists, PassTimes length, int parts = 0) {
  using Key = std::tuple<char, int, int, int>;  // F or G (gradient handed on), stage, micro-batch, slice
  std::map<Key, int> over;                      // when
  std::vector<std::size_t> next(lists.size(), 0);
  const std::vector<int> nothing(lists.size(), 0);
  std::vector<int> free = nothing, in_flight = nothing, first(lists.size(), -1);
  ReplayResult result{true, 0, nothing, nothing, nothing};
  int stages = 0, last_slice = 0;
  std::size_t left = 0;
  for (const auto& list : lists) {
    left += list.size();
    for (const Action& action : list) {
      stages = std::max(stages, action.stage + 1);
      last_slice = std::max(last_slice, action.slice);
    }
  }
  if (parts == 0) parts = stages;
  int idle_for = 0;
  for (int now = 0; left > 0; ++now) {
    const auto is_over = [&](char what, int stage, int micro_batch, int slice) {
      const auto found = over.find({what, stage, micro_batch, slice});
      return found != over.end() && found->second <= now;
    };
    ++idle_for;
    for (std::size_t r = 0; r < lists.size(); ++r) {
      if (free[r] > now || next[r] == lists[r].size()) continue;
      const auto is_ready = [&](const Action& a) {
        const int m = a.micro_batch;
        if (a.pass == Pass::forward)
          return (a.stage % parts == 0 || is_over('F', a.stage - 1, m, a.slice)) &&
                 (a.slice == 0 || is_over('F', a.stage, m, a.slice - 1));
        if (a.pass == Pass::weight_grad) return is_over('G', a.stage, m, a.slice);
        return is_over('F', a.stage, m, a.slice) &&
               (a.stage % parts + 1 == parts || is_over('G', a.stage + 1, m, a.slice)) &&
               (a.slice == last_slice || is_over('G', a.stage, m, a.slice + 1));
      };
      const std::size_t cell = lists[r][next[r]].with_next ? 2 : 1;
      const auto begin = lists[r].begin() + static_cast<std::ptrdiff_t>(next[r]);
      const auto end = begin + static_cast<std::ptrdiff_t>(cell);
      if (!std::all_of(begin, end, is_ready)) continue;
      if (first[r] < 0) first[r] = now;
      free[r] = now;
      for (auto each = begin; each != end; ++each) free[r] += length.of(each->pass);
      for (auto each = begin; each != end; ++each) {
        const Action& a = *each;
        if (a.pass != Pass::weight_grad)
          over[{a.pass == Pass::forward ? 'F' : 'G', a.stage, a.micro_batch, a.slice}] = free[r];
        result.busy[r] += length.of(a.pass);
        in_flight[r] += a.pass == Pass::forward ? 1 : a.pass == Pass::input_grad ? 0 : -1;
        result.most_in_flight[r] = std::max(result.most_in_flight[r], in_flight[r]);
      }
      result.idle[r] = free[r] - first[r] - result.busy[r];
      result.makespan = std::max(result.makespan, free[r]);
      next[r] += cell;
      left -= cell;
      idle_for = 0;
    }
    if (idle_for > 2 * length.longest() + 2) return {false, now, {}, {}, {}};
  }
  return result;
}

}  // namespace slipway::test
