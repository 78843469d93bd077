#include "schedules/catalogue/v_pattern.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace slipway::schedules {
namespace {

constexpr int passes_of_a_micro_batch = 6;  // on a rank: F, I and W of two stages

// Rank's list as the pattern has it.
std::vector<Action> pattern_order(const ScheduleShape& shape, VPattern pattern, int rank) {
  const int p = shape.pipeline, down = rank, up = 2 * p - 1 - rank;
  const std::array<int, 4> begins = pattern(p, rank);
  const std::array<std::pair<Pass, int>, 4> passes{
      {{Pass::forward, down}, {Pass::forward, up}, {Pass::input_grad, up}, {Pass::input_grad, down}}};
  std::vector<std::pair<int, Action>> placed;
  for (int m = 0; m < shape.micro_batches; ++m)
    for (std::size_t i = 0; i < passes.size(); ++i)
      placed.push_back({begins[i] + passes_of_a_micro_batch * m, {passes[i].first, passes[i].second, m}});
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Action> list, waiting;
  std::size_t first_waiting = 0;
  int free = 0;  // the next place of the pattern
  for (const auto& [time, action] : placed) {
    for (; free < time && first_waiting < waiting.size(); ++free) list.push_back(waiting[first_waiting++]);
    list.push_back(action);
    if (action.pass == Pass::input_grad) waiting.push_back({Pass::weight_grad, action.stage, action.micro_batch});
    free = time + 1;
  }
  list.insert(list.end(), waiting.begin() + static_cast<std::ptrdiff_t>(first_waiting), waiting.end());
  return list;
}

// Runs all ranks at equal passes. A rank keeps its order up to its last forward; behind it, an input gradient runs as
// soon as it can, and a weight gradient where none can.
class Drain {
 public:
  Drain(const ScheduleShape& shape, const ActionLists& lists)
      : stages_(shape.stages()), micro_batches_(shape.micro_batches), lists_(lists) {
    const auto slots = static_cast<std::size_t>(stages_) * static_cast<std::size_t>(micro_batches_);
    forward_.assign(slots, never), input_grad_.assign(slots, never);
    for (const auto& list : lists) {
      const auto last =
          std::find_if(list.rbegin(), list.rend(), [](const Action& a) { return a.pass == Pass::forward; });
      ranks_.push_back({.kept = static_cast<std::size_t>(list.rend() - last), .behind = {last.base(), list.end()}});
      left_ += list.size();
    }
  }

  ActionLists run() {
    ActionLists order(lists_.size());
    std::vector<Action> started;
    for (int now = 0; left_ > 0; ++now) {
      started.clear();
      for (std::size_t r = 0; r < lists_.size(); ++r) {
        const auto action = next(r, now);
        if (!action) continue;
        order[r].push_back(*action);
        started.push_back(*action);
        --left_;
      }
      for (const Action& action : started) {
        if (action.pass == Pass::forward) forward_[slot(action.stage, action.micro_batch)] = now + 1;
        if (action.pass == Pass::input_grad) input_grad_[slot(action.stage, action.micro_batch)] = now + 1;
      }
    }
    return order;
  }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
  struct Rank {
    std::size_t kept = 0, at = 0;
    std::vector<Action> behind;
  };
  std::size_t slot(int stage, int micro_batch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(micro_batch);
  }
  bool is_ready(const Action& action, int now) const {
    const int stage = action.stage, m = action.micro_batch;
    if (action.pass == Pass::forward) return stage == 0 || forward_[slot(stage - 1, m)] <= now;
    if (action.pass == Pass::weight_grad) return input_grad_[slot(stage, m)] <= now;
    return forward_[slot(stage, m)] <= now && (stage + 1 == stages_ || input_grad_[slot(stage + 1, m)] <= now);
  }
  std::optional<Action> next(std::size_t r, int now) {
    Rank& rank = ranks_[r];
    if (rank.at < rank.kept) {
      const Action& action = lists_[r][rank.at];
      if (!is_ready(action, now)) return {};
      ++rank.at;
      return action;
    }
    for (const Pass pass : {Pass::input_grad, Pass::weight_grad}) {
      const auto found = std::find_if(rank.behind.begin(), rank.behind.end(),
                                      [&](const Action& a) { return a.pass == pass && is_ready(a, now); });
      if (found == rank.behind.end()) continue;
      const Action action = *found;
      rank.behind.erase(found);
      return action;
    }
    return {};
  }

  int stages_, micro_batches_;
  const ActionLists& lists_;
  std::vector<Rank> ranks_;
  std::vector<int> forward_, input_grad_;  // when they are done
  std::size_t left_ = 0;
};

}  // namespace

std::optional<ShapeRefusal> refuse_v(const std::string& name, const ScheduleShape& shape) {
  if (shape.chunks != 2) {
    return ShapeRefusal{name + " needs 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or choose another schedule.name"};
  }
  return refuse_slices(name, shape);
}

ActionLists v_order(const ScheduleShape& shape, VPattern pattern) {
  ActionLists lists;
  for (int rank = 0; rank < shape.pipeline; ++rank) lists.push_back(pattern_order(shape, pattern, rank));
  return Drain(shape, lists).run();
}

}  // namespace slipway::schedules
