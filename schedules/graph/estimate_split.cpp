// Lower bounds for schedules whose backward is cut in two, or whose stages lie otherwise than s mod p (zb-*, dualpipe-v):
//
//   busy     a rank's lane runs its forwards, input gradients and weight gradients one after the other; the collectives
//            of a layer are a chain with its segments, and a weight gradient has none
//   passes   the longest path from rank 0's first task to the end of its list: a list replay of the actions, in which a
//            message to another rank takes its time and one to the rank itself none
// after which rank 0 updates its stages. Only on one kind of machine, with the same links in the groups of all ranks: else
// the compute alone is claimed. Guarded by tests/estimate_test.cpp and tests/search_answers_test.cpp.
#include <algorithm>
#include <limits>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

bool are_alike(const LinkPath& a, const LinkPath& b) {
  return a.latency == b.latency && a.bandwidth == b.bandwidth && a.reduce_bandwidth == b.reduce_bandwidth &&
         a.tree.latency == b.tree.latency && a.tree.bandwidth == b.tree.bandwidth;
}

bool are_alike(const std::vector<LinkPath>& paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const LinkPath& path) { return are_alike(path, paths.front()); });
}

class Replay {
 public:
  Replay(const StageCosts& costs, const Wiring& wires, const ScheduleUse& use, int micro_batches)
      : costs_(costs), wires_(wires), use_(use), micro_batches_(micro_batches),
        forward_at_(at(use.placement.stages() * micro_batches), unknown), backward_at_(forward_at_) {
    for (int j = 0; j < micro_batches; ++j) forward_at_[at(j)] = 0;
  }

  // End of rank 0's list.
  double run(const ActionLists& lists) {
    std::vector<std::size_t> next(lists.size(), 0);
    std::vector<double> free(lists.size(), 0);
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

  // A weight gradient follows its input gradient on the same rank, whose list is in order.
  bool may_start(const Action& action) const {
    if (action.pass == Pass::weight_grad) return true;
    return (action.pass == Pass::forward ? forward_at_ : backward_at_)[slot(action.stage, action.micro_batch)] != unknown;
  }

  double perform(const Action& action, double free) {
    const std::size_t s = at(action.stage);
    if (action.pass == Pass::weight_grad) return free + costs_.weight_s[s];
    const bool forward = action.pass == Pass::forward;
    const double ready = (forward ? forward_at_ : backward_at_)[slot(action.stage, action.micro_batch)];
    const double early = forward ? 0 : costs_.early_s[s];
    const double whole = forward ? costs_.forward_s[s] : costs_.backward_s[s];
    const double end = std::max(free + early, ready) - early + whole -
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
          now + send_seconds(use_.placement.rank[at(action.stage)], use_.placement.rank[at(to)]);
  }

  // 0 where it is not known.
  double send_seconds(int from, int to) const {
    const int p = static_cast<int>(wires_.to_next.size());
    if (from == to || p == 0) return 0;
    const bool next = to == (from + 1) % p, previous = from == (to + 1) % p;
    if (!next && !previous) return 0;
    const LinkPath& path = (next ? wires_.to_next : wires_.to_previous)[at(from)];
    return path.latency + costs_.send_bytes / path.bandwidth;
  }

  const StageCosts& costs_;
  const Wiring& wires_;
  const ScheduleUse& use_;
  int micro_batches_;
  std::vector<double> forward_at_, backward_at_;
};

}  // namespace

bool is_split(Parts& parts, const LayoutChoice& choice, int micro_batches) {
  const Wiring& wires = parts.wiring(choice.layout);
  const ScheduleUse& use = parts.use_of(choice, micro_batches);
  return !use.is_plain && use.placement.copies == 1 && parts.base.slices == 1 && use.placement.rank.front() == 0 &&
         are_alike(wires.tensor) && are_alike(wires.context);
}

double split_busy_seconds(Parts& parts, const LayoutChoice& choice, int micro_batches, int q) {
  const StageCosts& costs = parts.costs_of(choice);
  const ScheduleUse& use = parts.use_of(choice, micro_batches);
  double busy = 0;
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[at(stage)] == q)
      busy += use.forwards[at(stage)] * (costs.forward_s[at(stage)] + costs.backward_s[at(stage)]);
  return busy;
}

double split_passes_seconds(Parts& parts, const LayoutChoice& choice, int micro_batches, const ActionLists& lists) {
  return Replay(parts.costs_of(choice), parts.wiring(choice.layout), parts.use_of(choice, micro_batches), micro_batches)
      .run(lists);
}

}  // namespace slipway
