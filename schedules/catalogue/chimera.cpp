// Chimera: two copies of the model in one pipeline, in opposite directions, so that each fills the bubbles of the other
// (Li & Hoefler 2021, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines", SC21).
//
//   rank 0 │ 0F0 0F2  .  7F1 7B1 7F3 7B3 0B0  .  0B2        p = 4, m = 4; a column is one pass
//   rank 1 │  .  1F0 6F1 1F2 6F3 6B1 1B0 6B3 1B2  .
//   rank 2 │  .  5F1 2F0 5F3 2F2 2B0 5B1 2B2 5B3  .         stages 0..3 go down, 4..7 (the same four
//   rank 3 │ 4F1 4F3  .  3F0 3B0 3F2 3B2 4B1  .  4B3        parts of the model) up
//
// Even micro-batches go down (stage s on rank s), odd ones up (stage p + s on rank p − 1 − s). Both copies of a part
// share their gradients, as if they were data-parallel ranks. The makespan is p·F + (2p − 2)·B for m = p, and
// (m + p/2 − 1)(F + B) for larger multiples of p (Osawa et al. 2022, PipeFisher): half the bubble of 1F1B or less.
// Chimera wins with few micro-batches. It pays with two stages' weights per rank, with gradient reductions between the
// copies even at one data-parallel rank, and with activations of up to 2p − 2 stages.
//
// The order is that of a greedy run of all ranks, with F = B = 1 up to p micro-batches and F = 1, B = 3 beyond. The
// latter ratio keeps backwards from waiting; its orders are optimal for B/F from 1 to 3, those of other ratios are
// worse. A free rank takes a forward if its last action was a backward and a forward is ready, else a backward, else a
// forward. Each time it takes the earliest micro-batch. At most p forwards of a direction wait for their backward.
// Guarded by tests/schedules/catalogue_test.cpp.
#include <algorithm>
#include <optional>
#include <string>

#include "schedules/catalogue/two_directions.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  return refuse_two_directions("chimera", shape, "another schedule.name");
}

// A greedy run of all ranks in integer time.
class Run {
 public:
  explicit Run(const ScheduleShape& shape)
      : p_(shape.pipeline),
        each_way_(shape.micro_batches / 2),
        backward_time_(shape.micro_batches <= shape.pipeline ? 1 : 3),
        lists_(p_),
        free_(p_, 0),
        forwards_(2 * p_),
        backwards_(2 * p_) {}

  ActionLists take() {
    for (int left = 4 * p_ * each_way_, now = 0; left > 0; ++now) {
      for (int rank = 0; rank < p_; ++rank) {
        if (free_[rank] > now) continue;
        const std::optional<Action> next = choose(rank, now);
        if (!next) continue;
        start(rank, *next, now);
        --left;
      }
    }
    return std::move(lists_);
  }

 private:
  // Ends of a stage's passes so far, in the order of its direction's micro-batches.
  using Ends = std::vector<int>;
  static bool over(const Ends& ends, int index, int now) {
    return index < static_cast<int>(ends.size()) && ends[index] <= now;
  }

  std::optional<Action> ready_forward(int stage, int now) const {
    const int index = static_cast<int>(forwards_[stage].size());
    const int waiting = index - static_cast<int>(backwards_[stage].size());
    if (index == each_way_ || waiting >= p_) return {};
    if (stage % p_ > 0 && !over(forwards_[stage - 1], index, now)) return {};
    return Action{Pass::forward, stage, 2 * index + stage / p_};
  }

  std::optional<Action> ready_backward(int stage, int now) const {
    const int index = static_cast<int>(backwards_[stage].size());
    if (!over(forwards_[stage], index, now)) return {};
    if (stage % p_ + 1 < p_ && !over(backwards_[stage + 1], index, now)) return {};
    return Action{Pass::backward, stage, 2 * index + stage / p_};
  }

  std::optional<Action> choose(int rank, int now) const {
    const int down = rank, up = 2 * p_ - 1 - rank;
    const auto earlier = [](const std::optional<Action>& a, const std::optional<Action>& b) {
      return !b || (a && a->micro_batch < b->micro_batch) ? a : b;
    };
    const auto forward = earlier(ready_forward(down, now), ready_forward(up, now));
    const auto backward = earlier(ready_backward(down, now), ready_backward(up, now));
    const auto& list = lists_[rank];
    const bool prefers_forward = !list.empty() && list.back().pass == Pass::backward;
    if (prefers_forward && forward) return forward;
    return backward ? backward : forward;
  }

  void start(int rank, const Action& action, int now) {
    const bool forward = action.pass == Pass::forward;
    free_[rank] = now + (forward ? 1 : backward_time_);
    (forward ? forwards_ : backwards_)[action.stage].push_back(free_[rank]);
    lists_[rank].push_back(action);
  }

  int p_, each_way_, backward_time_;
  ActionLists lists_;
  std::vector<int> free_;
  std::vector<Ends> forwards_, backwards_;  // per stage
};

ActionLists actions(const ScheduleShape& shape) { return Run(shape).take(); }

const RegisterSchedule registered{
    {.name = "chimera",
     .summary = "two copies of the model in opposite directions (Li & Hoefler 2021, SC21)",
     .copies = 2,
     .has_filled_form = true,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
