#include "schedules/draw/unit_times.h"

#include <algorithm>
#include <unordered_map>

namespace slipway::schedules {
namespace {

constexpr int never = -1;

// A 64-bit key of an action; 20 bits each are far beyond any stage or micro-batch count.
std::uint64_t key_of(const Action& action) {
  return (static_cast<std::uint64_t>(action.pass) << 60U) | (static_cast<std::uint64_t>(action.slice) << 40U) |
         (static_cast<std::uint64_t>(action.stage) << 20U) | static_cast<std::uint64_t>(action.micro_batch);
}

// The state of the unit-time replay: when each action was done, and how far each rank is.
class Replay {
 public:
  Replay(const ActionLists& lists, int parts) : lists_(lists), head_(lists.size()), free_(lists.size()), parts_(parts) {
    int stages = 1;
    for (const auto& list : lists) {
      for (const Action& action : list) {
        stages = std::max(stages, action.stage + 1);
        last_slice_ = std::max(last_slice_, action.slice);
      }
      times_.column.emplace_back(list.size(), never);
    }
    if (parts_ == 0) parts_ = stages;
  }

  UnitTimes run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank) moved |= advance(rank);
    }
    place_stuck();
    return std::move(times_);
  }

 private:
  // Column after which `action` may start, or never.
  int ready(const Action& action) const {
    const auto at = [&](Pass pass, int stage, int slice) {
      const auto found = done_.find(key_of({pass, stage, action.micro_batch, slice}));
      return found == done_.end() ? never : found->second;
    };
    const auto gradient = [&](int stage, int slice) {
      return std::max(at(Pass::backward, stage, slice), at(Pass::input_grad, stage, slice));
    };
    const int stage = action.stage, slice = action.slice;
    switch (action.pass) {
      case Pass::forward:
        return both(stage % parts_ == 0 ? 0 : at(Pass::forward, stage - 1, slice),
                    slice == 0 ? 0 : at(Pass::forward, stage, slice - 1));
      case Pass::recompute:
        return at(Pass::forward, stage, slice);
      case Pass::weight_grad:
        return at(Pass::input_grad, stage, slice);
      case Pass::none:
        return 0;
      case Pass::backward:
      case Pass::input_grad:
        break;
    }
    const int next = stage % parts_ + 1 == parts_ ? 0 : gradient(stage + 1, slice);
    const int later = slice == last_slice_ ? 0 : gradient(stage, slice + 1);
    return both(at(Pass::forward, stage, slice), both(next, later));
  }

  static int both(int a, int b) { return a == never || b == never ? never : std::max(a, b); }

  bool advance(std::size_t rank) {
    bool moved = false;
    const auto& list = lists_[rank];
    for (; head_[rank] < list.size(); ++head_[rank], moved = true) {
      const Action& action = list[head_[rank]];
      int after = ready(action);
      if (action.with_next && head_[rank] + 1 < list.size()) after = both(after, ready(list[head_[rank] + 1]));
      if (after == never) break;
      place(rank, std::max(after, free_[rank]));
      done_.emplace(key_of(action), free_[rank]);  // a doubled action delivers the first time
    }
    return moved;
  }

  void place(std::size_t rank, int column) {
    times_.column[rank][head_[rank]] = column;
    free_[rank] = column + 1;
    times_.columns = std::max(times_.columns, column + 1);
  }

  void place_stuck() {
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      if (head_[rank] < lists_[rank].size()) {
        times_.stuck.push_back({static_cast<int>(rank), static_cast<int>(head_[rank])});
      }
    }
    const int wall = times_.columns;
    for (const GridCell& cell : times_.stuck) {
      const auto rank = static_cast<std::size_t>(cell.row);
      for (free_[rank] = wall; head_[rank] < lists_[rank].size(); ++head_[rank]) place(rank, free_[rank]);
    }
  }

  const ActionLists& lists_;
  std::vector<std::size_t> head_;
  std::vector<int> free_;
  std::unordered_map<std::uint64_t, int> done_;  // first column after the action
  int parts_, last_slice_ = 0;
  UnitTimes times_;
};

}  // namespace

UnitTimes unit_times(const ActionLists& lists, int parts) { return Replay(lists, parts).run(); }

}  // namespace slipway::schedules
