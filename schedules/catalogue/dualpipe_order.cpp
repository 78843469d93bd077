#include "schedules/catalogue/dualpipe_order.h"

#include <array>
#include <optional>

namespace slipway::schedules {
namespace {

enum Leg { early, late };

// One rank's list while it grows. Impossible actions (no micro-batch left, its forward not done) are left out, so few
// micro-batches make a short version of every phase.
class RankOrder {
 public:
  RankOrder(const DualPipeLeg& early, const DualPipeLeg& late) : legs_{early, late} {}
  std::vector<Action> take() { return std::move(list_); }

  void forward(Leg leg) {
    if (const auto action = next_forward(leg)) list_.push_back(*action);
  }
  bool backward(Leg leg, Pass pass) {
    const auto action = next_backward(leg, pass);
    if (!action) return false;
    list_.push_back(*action);
    if (pass == Pass::input_grad) waiting_.push_back({Pass::weight_grad, action->stage, action->micro_batch});
    return true;
  }
  bool weight_grad() {
    if (first_waiting_ == waiting_.size()) return false;
    list_.push_back(waiting_[first_waiting_++]);
    return true;
  }
  // A forward of one leg and a backward of the other; what is possible of it where not both are.
  void pair(Leg leg, bool is_one) {
    const std::size_t before = list_.size();
    forward(leg);
    const bool forwards = list_.size() > before;
    if (backward(leg == early ? late : early, Pass::backward) && forwards) list_[before].with_next = is_one;
  }

 private:
  static int micro_batch(const DualPipeLeg& leg, int i) { return leg.first + i * leg.step; }
  std::optional<Action> next_forward(Leg leg) {
    if (forwards_[leg] >= legs_[leg].count) return {};
    return Action{Pass::forward, legs_[leg].stage, micro_batch(legs_[leg], forwards_[leg]++)};
  }
  std::optional<Action> next_backward(Leg leg, Pass pass) {
    if (backwards_[leg] >= forwards_[leg]) return {};
    return Action{pass, legs_[leg].stage, micro_batch(legs_[leg], backwards_[leg]++)};
  }

  std::array<DualPipeLeg, 2> legs_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::vector<Action> list_, waiting_;
  std::size_t first_waiting_ = 0;
};

void fill(RankOrder& order, int half, int r) {
  for (int i = 0; i < 2 * (half - r - 1); ++i) order.forward(early);
  for (int i = 0; i < r + 1; ++i) order.forward(early), order.forward(late);
  for (int i = 0; i < half - r - 1; ++i)
    order.backward(late, Pass::input_grad), order.weight_grad(), order.forward(late);
}

// r + 1 pairs of backwards. The first half of these 2(r + 1) is whole.
void drain(RankOrder& order, int half, int r) {
  for (int i = 0; i < half - r - 1; ++i) order.backward(late, Pass::backward), order.pair(late, true);
  for (int i = 0; i < 2 * (r + 1); ++i)
    order.backward(i % 2 == 0 ? late : early, i < r + 1 ? Pass::backward : Pass::input_grad);
  for (int i = 0; i < half - r - 1; ++i) order.weight_grad(), order.backward(early, Pass::input_grad);
  while (order.backward(late, Pass::input_grad) || order.backward(early, Pass::input_grad)) continue;
  while (order.weight_grad()) continue;
}

}  // namespace

std::vector<Action> dualpipe_order(int half, int r, const DualPipeLeg& early_leg, const DualPipeLeg& late_leg) {
  RankOrder order(early_leg, late_leg);
  fill(order, half, r);
  for (int i = 0; i < early_leg.count - 2 * half + r + 1; ++i) {
    order.pair(early, i > 0 || r + 1 < half);
    order.pair(late, true);
  }
  drain(order, half, r);
  return order.take();
}

}  // namespace slipway::schedules
