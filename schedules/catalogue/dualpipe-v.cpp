// DualPipe-V: DualPipe (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report") cut in half. The two directions of its
// pipeline become the two legs of a V, and no weights are held twice (Sea AI Lab 2025, "DualPipe could be better
// without the Dual").
//
//   rank 0 │ 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3       p = 2, m = 4
//   rank 1 │  .  1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3    (a column a pass)
//
// In the steady state a forward of one leg and a backward of the other always stand side by side: an overlapping kernel
// would hide communication in the pair. Backwards are whole there, and cut in two only where the pipeline fills and
// drains. The bubble is (p − 1)/2·F at F = I = W, with F that of both stages of a rank. Every rank holds 2p + 1 stage
// activations (p + ½ micro-batches).
// DualPipe-V wins where long messages (experts) must hide behind compute. ZB-V has no bubble and holds half a
// micro-batch less, but leaves nothing to hide messages in.
//
// The order of rank r; `W` is the oldest waiting weight gradient:
//   2(p−r−1) F down │ r+1 × (F down, F up) │ p−r−1 × (I up, W, F up)                      fills the pipeline
//   m−2p+r+1 × (F down, B up, F up, B down)                                               steady state
//   p−r−1 × (B up, F up, B down) │ r+1 × (B up, B down), the later half I for B           drains it
//   p−r−1 × (W, I down) │ the remaining W
// Guarded by tests/schedules/catalogue_test.cpp.
#include <array>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 2) {
    return ShapeRefusal{"dualpipe-v needs 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or choose another schedule.name"};
  }
  if (shape.slices != 1) {
    return ShapeRefusal{"dualpipe-v does not cut sequences into slices", "set schedule.slices to 1"};
  }
  return {};
}

// One rank's list while it grows. Impossible actions (no micro-batch left, its forward not done) are left out, so few
// micro-batches make a short version of every phase.
class RankOrder {
 public:
  RankOrder(const ScheduleShape& shape, int rank, std::vector<Action>& list)
      : stage_{rank, 2 * shape.pipeline - 1 - rank}, micro_batches_(shape.micro_batches), list_(list) {}

  enum Leg { down, up };
  void forward(Leg leg) {
    if (forwards_[leg] < micro_batches_) list_.push_back({Pass::forward, stage_[leg], forwards_[leg]++});
  }
  bool backward(Leg leg, Pass pass) {
    if (backwards_[leg] >= forwards_[leg]) return false;
    list_.push_back({pass, stage_[leg], backwards_[leg]++});
    if (pass == Pass::input_grad) waiting_.push_back({Pass::weight_grad, stage_[leg], backwards_[leg] - 1});
    return true;
  }
  bool weight_grad() {
    if (first_waiting_ == waiting_.size()) return false;
    list_.push_back(waiting_[first_waiting_++]);
    return true;
  }

 private:
  std::array<int, 2> stage_, forwards_{}, backwards_{};
  int micro_batches_;
  std::vector<Action>& list_;
  std::vector<Action> waiting_;
  std::size_t first_waiting_ = 0;
};

void fill(RankOrder& order, int p, int r) {
  using enum RankOrder::Leg;
  for (int i = 0; i < 2 * (p - r - 1); ++i) order.forward(down);
  for (int i = 0; i < r + 1; ++i) order.forward(down), order.forward(up);
  for (int i = 0; i < p - r - 1; ++i) order.backward(up, Pass::input_grad), order.weight_grad(), order.forward(up);
}

void drain(RankOrder& order, int p, int r) {
  using enum RankOrder::Leg;
  for (int i = 0; i < p - r - 1; ++i)
    order.backward(up, Pass::backward), order.forward(up), order.backward(down, Pass::backward);
  for (int i = 0; i < 2 * (r + 1); ++i)  // r + 1 pairs; the first half of these 2(r + 1) is whole
    order.backward(i % 2 == 0 ? up : down, i < r + 1 ? Pass::backward : Pass::input_grad);
  for (int i = 0; i < p - r - 1; ++i) order.weight_grad(), order.backward(down, Pass::input_grad);
  while (order.backward(up, Pass::input_grad) || order.backward(down, Pass::input_grad)) continue;
  while (order.weight_grad()) continue;
}

ActionLists actions(const ScheduleShape& shape) {
  using enum RankOrder::Leg;
  const int p = shape.pipeline;
  ActionLists lists(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    RankOrder order(shape, rank, lists[rank]);
    fill(order, p, rank);
    for (int i = 0; i < shape.micro_batches - 2 * p + rank + 1; ++i) {
      order.forward(down), order.backward(up, Pass::backward);
      order.forward(up), order.backward(down, Pass::backward);
    }
    drain(order, p, rank);
  }
  return lists;
}

const RegisterSchedule registered{
    {.name = "dualpipe-v",
     .summary = "forward of one leg of a V beside backward of the other (DeepSeek-AI 2024, Sea AI Lab 2025)",
     .default_chunks = 2,
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
