// The longest path from rank 0's first forward to the end of its list: a list replay of the actions, in
// which a message to another rank takes its time and one to the rank itself none. Guarded by
// tests/estimate_test.cpp and tests/search_answers_test.cpp.
#include <algorithm>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Replay {
 public:
  Replay(const StageCosts& costs, const Wiring& wires, const ScheduleUse& use, int micro_batches)
      : costs_(costs),
        wires_(wires),
        use_(use),
        micro_batches_(micro_batches),
        forward_at_(at(use.placement.stages() * micro_batches), unknown),
        backward_at_(forward_at_) {
    for (int j = 0; j < micro_batches; ++j) forward_at_[slot(0, j)] = 0;
  }

  // End of rank 0's list.
  double run(const ActionLists& lists) {
    std::vector<std::size_t> next(lists.size(), 0);
    std::vector<double> free(lists.size(), 0);
    forward_lane_ = backward_lane_ = free;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t q = 0; q < lists.size(); ++q)
        for (; next[q] < lists[q].size() && may_start(lists[q][next[q]]); ++next[q], moved = true)
          free[q] = perform(lists[q][next[q]], free[q]);
    }
    return free.front();
  }

 private:
  static constexpr double unknown = -1;
  std::size_t slot(int stage, int micro_batch) const { return at(stage * micro_batches_ + micro_batch); }
  double ready(const Action& action) const {
    return (action.pass == Pass::forward ? forward_at_
                                         : backward_at_)[slot(action.stage, action.micro_batch)];
  }

  // A weight gradient follows its input gradient on the same rank, whose list is in order.
  bool may_start(const Action& action) const {
    return action.pass == Pass::weight_grad || ready(action) != unknown;
  }

  double perform(const Action& action, double free) {
    const std::size_t s = at(action.stage);
    if (action.pass == Pass::weight_grad) return free + costs_.weight_s[s];
    const bool forward = action.pass == Pass::forward;
    const double early = forward ? 0 : costs_.early_s[s];
    const double whole = forward ? costs_.forward_s[s] : costs_.backward_s[s];
    const double end = std::max(free + early, ready(action)) - early + whole -
                       (action.pass == Pass::input_grad ? costs_.weight_s[s] : 0);
    hand_on(action, forward, end);
    return end;
  }

  void hand_on(const Action& action, bool forward, double now) {
    const int last = use_.placement.stages() - 1, to = action.stage + (forward ? 1 : -1);
    if (forward && action.stage == last)
      backward_at_[slot(last, action.micro_batch)] = now;
    else if (to >= 0)
      (forward ? forward_at_ : backward_at_)[slot(to, action.micro_batch)] =
          arrival(use_.placement.rank[at(action.stage)], use_.placement.rank[at(to)], forward, now);
  }

  // Of a plain schedule there is one message lane per sender and direction, in the sender's order; of
  // others no lane is claimed. A send between ranks that are no neighbours, whose links are not known,
  // takes no time.
  double arrival(int from, int to, bool forward, double now) {
    const int p = static_cast<int>(wires_.to_next.size());
    if (from == to || p == 0) return now;
    const bool next = to == (from + 1) % p, previous = from == (to + 1) % p;
    if (!next && !previous) return now;
    const LinkPath& path = (next ? wires_.to_next : wires_.to_previous)[at(from)];
    double& lane = (forward ? forward_lane_ : backward_lane_)[at(from)];
    return lane = (use_.is_plain ? std::max(lane, now) : now) +
                  (path.latency + costs_.send_bytes / path.bandwidth);
  }

  const StageCosts& costs_;
  const Wiring& wires_;
  const ScheduleUse& use_;
  int micro_batches_;
  std::vector<double> forward_at_, backward_at_, forward_lane_, backward_lane_;
};

}  // namespace

double passes_seconds(StepEstimator::Parts& parts, const LayoutChoice& choice, int micro_batches,
                      const ActionLists& lists) {
  return Replay(parts.costs_of(choice), parts.wiring(choice.layout), parts.use_of(choice, micro_batches),
                micro_batches)
      .run(lists);
}

}  // namespace slipway
