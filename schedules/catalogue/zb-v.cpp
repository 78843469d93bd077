// ZB-V: no bubble in the memory of 1F1B. Each rank holds two stages in a V, stage r on the way down and stage 2p − 1 −
// r on the way up. The backward is cut in two (Qi et al. 2024, "Zero Bubble Pipeline Parallelism", section 6).
//
//   rank 0 │ 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3  .
//   rank 1 │  .  1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3
//                                                                        p = 2, m = 4; 2F0 follows 1F0 on rank 1
//
// Loss and first backward are on rank 0, so a rank knows its backward early. The stage on the way up is kept for a
// short time, the one on the way down for a long time: 2p stage activations (p whole micro-batches) on every rank.
// Without communication and with F = I = W no rank is ever idle between its first and its last task. With other
// durations small gaps appear.
// ZB-V wins on memory against ZB-H2. It pays with twice the messages, and with gaps when a message takes its time.
//
// The order of rank r:
//   2(p−r)−1 F down │ r × (F up, F down) │ p−r × (F up, I up, W up)                  fills the pipeline
//   F I W down, F I W up, and so on until all forwards are done                      steady state
//   r × (I down, I up) │ p−r × (I down, W down) │ the remaining W, up before down    drains it
// Guarded by tests/schedules/catalogue_test.cpp.
#include <array>
#include <string>

#include "schedules/step/action.h"

namespace slipway::schedules {
namespace {

std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
  if (shape.chunks != 2) {
    return ShapeRefusal{"zb-v needs 2 chunks per rank, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 2 or choose another schedule.name"};
  }
  return refuse_slices("zb-v", shape);
}

// One rank's list while it grows. An impossible action (no micro-batch left, or its forward or input gradient not done)
// is left out, so few micro-batches make a short version of every phase.
class RankOrder {
 public:
  RankOrder(const ScheduleShape& shape, int rank, std::vector<Action>& list)
      : stage_{rank, 2 * shape.pipeline - 1 - rank}, micro_batches_(shape.micro_batches), list_(list) {}

  enum Leg { down, up };
  bool forward(Leg leg) { return add(Pass::forward, leg, forwards_[leg], micro_batches_); }
  bool input_grad(Leg leg) { return add(Pass::input_grad, leg, inputs_[leg], forwards_[leg]); }
  bool weight_grad(Leg leg) { return add(Pass::weight_grad, leg, weights_[leg], inputs_[leg]); }
  bool forwards_left() const { return forwards_[down] < micro_batches_ || forwards_[up] < micro_batches_; }

 private:
  bool add(Pass pass, Leg leg, int& done, int limit) {
    if (done >= limit) return false;
    list_.push_back({pass, stage_[leg], done++});
    return true;
  }

  std::array<int, 2> stage_, forwards_{}, inputs_{}, weights_{};
  int micro_batches_;
  std::vector<Action>& list_;
};

void fill(RankOrder& order, int p, int r) {
  using enum RankOrder::Leg;
  for (int i = 0; i < 2 * (p - r) - 1; ++i) order.forward(down);
  for (int i = 0; i < r; ++i) order.forward(up), order.forward(down);
  for (int i = 0; i < p - r; ++i) order.forward(up), order.input_grad(up), order.weight_grad(up);
}

void drain(RankOrder& order, int p, int r) {
  using enum RankOrder::Leg;
  for (int i = 0; i < r; ++i) order.input_grad(down), order.input_grad(up);
  for (int i = 0; i < p - r; ++i) order.input_grad(down), order.weight_grad(down);
  while (order.input_grad(down) || order.input_grad(up)) continue;
  while (order.weight_grad(up)) continue;
  while (order.weight_grad(down)) continue;
}

ActionLists actions(const ScheduleShape& shape) {
  const int p = shape.pipeline;
  ActionLists lists(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    RankOrder order(shape, rank, lists[rank]);
    fill(order, p, rank);
    while (order.forwards_left()) {
      for (const auto leg : {RankOrder::down, RankOrder::up})
        order.forward(leg), order.input_grad(leg), order.weight_grad(leg);
    }
    drain(order, p, rank);
  }
  return lists;
}

const RegisterSchedule registered{
    {.name = "zb-v",
     .summary = "split backward on stages in a V, no bubble in the memory of 1f1b (Qi et al. 2024)",
     .default_chunks = 2,
     .also_called = "zero-bubble",
     .refuse = refuse,
     .actions = actions}};

}  // namespace
}  // namespace slipway::schedules
