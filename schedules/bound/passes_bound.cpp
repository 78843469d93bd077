#include "schedules/bound/passes_bound.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedules/bound/step_end.h"
#include "schedules/time/host_issue.h"

namespace slipway::schedules {
namespace {

using Parts = StepEstimator::Parts;

bool are_alike(const std::vector<LinkPath>& paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const LinkPath& path) { return path == paths.front(); });
}

// The longest path from rank 0's first forward to the end of its list. It is a list replay of the actions, in which a
// message to another rank takes its time and one to the rank itself none. An action starts and ends no earlier than its
// host, which began at the norm, has issued it. All that follows the norm is in `end`, which is therefore at least the
// hosts' lead; with more lead than there was, the walk is only shorter. Guarded by tests/schedules/estimate_test.cpp and
// tests/scenarios/search_test.cpp.
class Replay {
 public:
  // `lead`: seconds that hosts have had, at most, when rank 0 begins its first forward.
  Replay(StepEstimator::Parts& parts, const Step& step, int micro_batches, double lead)
      : costs_(parts.costs_of(step)),
        use_(parts.use_of(step, micro_batches)),
        micro_batches_(micro_batches),
        blocking_(step.blocking_transfers),
        forward_at_(use_.placement.stages() * micro_batches, unknown),
        backward_at_(forward_at_) {
    for (int j = 0; j < micro_batches; ++j) forward_at_[slot(0, j)] = 0;
    const Wiring& wires = parts.wiring(step.layout);
    const auto seconds = [&](const LinkPath& path) { return sent_seconds(step.layout, costs_.send, 2, path); };
    for (const LinkPath& path : wires.to_next) to_next_.push_back(seconds(path));
    for (const LinkPath& path : wires.to_previous) to_previous_.push_back(seconds(path));
    lost_ = use_.is_plain ? lost_beside_messages(parts, step, costs_)
                          : std::vector<Lost>(static_cast<std::size_t>(use_.placement.stages()));
    slower_ = 1 / parts.fastest_gpu;
    delayed_ = step.delay_weight_grads;
    has_pairs_ = delayed_ || !use_.pairs.empty();
    groups_.resize(static_cast<std::size_t>(step.layout.pipeline));
    host_.assign(static_cast<std::size_t>(step.layout.pipeline), never);
    for (int q = 0; q < step.layout.pipeline && use_.is_plain; ++q) {
      const Machine& machine = parts.cluster.groups[wires.machine_group[q]].machine;
      if (!has_host(machine) || (q > 0 && !joins_all_ranks(parts.base))) continue;
      host_[q] = -lead - (q == 0 ? 0 : ahead_of_first(machine));
    }
    gathered_.assign(costs_.forward_s.size(), never);
    if (!use_.is_plain || !gathers_beside(step)) return;
    const double begin = seconds_to_first(parts, step, costs_, 0);
    // Without a norm nothing ties other ranks to rank 0, and its later stages' gathers may come before the first one's.
    const bool joins = joins_all_ranks(parts.base);
    const int p = step.layout.pipeline, stages = use_.placement.stages();
    for (int q = 0; q < (joins ? p : 1); ++q) {
      const Machine& machine = parts.machine_of(step.layout, q);
      const double before = begin + (q == 0 ? 0 : ahead_of_first(machine));
      double gathered = update_of(step, costs_, q, machine).first;
      for (int stage = q; stage < (joins ? stages : p); stage += p)
        gathered_[stage] = gathered_forward(parts, step, costs_, stage, gathered) - before;
    }
  }

  // End of rank 0's list.
  double run(const ActionLists& lists) {
    last_ = lists.front().back();
    std::vector<std::size_t> next(lists.size(), 0);
    std::vector<double> free(lists.size(), 0);
    forward_lane_ = backward_lane_ = free;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t q = 0; q < lists.size(); ++q)
        for (; next[q] < lists[q].size() && may_start(lists[q][next[q]]); ++next[q], moved = true)
          free[q] = has_pairs_ ? perform_together(lists[q][next[q]], free[q], groups_[q])
                               : perform(lists[q][next[q]], free[q]);
    }
    return free.front();
  }

 private:
  static constexpr double unknown = -1;
  std::size_t slot(int stage, int micro_batch) const { return stage * micro_batches_ + micro_batch; }
  double ready(const Action& action) const {
    return (action.pass == Pass::forward ? forward_at_ : backward_at_)[slot(action.stage, action.micro_batch)];
  }

  // A weight gradient follows its input gradient on the same rank, whose list is in order.
  bool may_start(const Action& action) const { return action.pass == Pass::weight_grad || ready(action) != unknown; }

  double perform(const Action& action, double free) {
    const std::size_t s = action.stage;
    if (action.pass == Pass::weight_grad) return free + costs_.weight_s[s];
    const bool forward = action.pass == Pass::forward;
    const double early = forward ? 0 : costs_.early_s[s];
    // Behind a longer last action of rank 0 more of its reductions would be hidden.
    double lost = forward ? lost_[s].forward : action == last_ ? 0 : lost_[s].backward;
    if (!forward && action.micro_batch == use_.last_backward[s] && action != last_) lost += lost_[s].last_backward;
    const double whole = lost + (forward ? costs_.forward_s[s] : costs_.backward_s[s]);
    double& host = host_[use_.placement.rank[s]];
    double end = std::max(std::max(free, host) + early, ready(action)) - early + whole -
                 (action.pass == Pass::input_grad ? costs_.weight_s[s] : 0);
    host += slower_ * (forward ? costs_.host_forward_s[s] : costs_.host_backward_s[s]);
    end = std::max(end, host);
    if (forward && action.micro_batch == 0) end = std::max(end, gathered_[s]);
    const double sent = hand_on(action, forward, end);
    return blocking_ ? std::max(end, sent) : end;
  }

  // The first action of a pair does not free the rank: the second one begins when the first did.
  struct Group {
    bool open = false;
    double first = 0;  // when the first segment of the group may begin, at least
    double ends = 0;   // the chains of its actions
    Together together;
  };
  double perform_together(const Action& action, double free, Group& group) {
    const std::size_t s = action.stage;
    if (action.pass == Pass::weight_grad) return free + costs_.weight_s[s];
    if (!std::exchange(group.open, action.with_next)) group = {action.with_next, never_ready, free, {}};
    const bool forward = action.pass == Pass::forward;
    const double early = forward ? 0 : costs_.early_s[s];
    const double chain = Together::chain(costs_, action.stage, action.pass, delayed_);
    const double end = std::max(free + early, ready(action)) - early + chain;
    hand_on(action, forward, end);
    group.together.add(costs_, action.stage, action.pass, delayed_);
    group.first = std::min(group.first, ready(action) - early);
    group.ends = std::max(group.ends, end);
    return group.open ? free : std::max(group.ends, std::max(free, group.first) + group.together.seconds());
  }

  // Returns when the next stage has it.
  double hand_on(const Action& action, bool forward, double now) {
    const int last = use_.placement.stages() - 1, to = action.stage + (forward ? 1 : -1);
    if (forward && action.stage == last) return backward_at_[slot(last, action.micro_batch)] = now;
    if (to < 0) return now;
    return (forward ? forward_at_ : backward_at_)[slot(to, action.micro_batch)] =
               arrival(use_.placement.rank[action.stage], use_.placement.rank[to], forward, now);
  }

  // A plain schedule has one message lane per sender and direction, in the sender's order. Others are assumed to have
  // no lanes. A send between ranks that are no neighbours, whose links are not known, takes no time.
  double arrival(int from, int to, bool forward, double now) {
    const int p = static_cast<int>(to_next_.size());
    if (from == to || p == 0) return now;
    const bool next = to == (from + 1) % p, previous = from == (to + 1) % p;
    if (!next && !previous) return now;
    const double seconds = (next ? to_next_ : to_previous_)[from];
    double& lane = (forward ? forward_lane_ : backward_lane_)[from];
    return lane = (use_.is_plain ? std::max(lane, now) : now) + seconds;
  }

  const StageCosts& costs_;
  const ScheduleUse& use_;
  int micro_batches_;
  bool blocking_;
  std::vector<double> to_next_, to_previous_;  // per rank: seconds of its messages
  std::vector<Lost> lost_;                     // per stage
  Action last_;                                // of rank 0
  bool delayed_ = false, has_pairs_ = false;
  static constexpr double never_ready = std::numeric_limits<double>::infinity();
  std::vector<Group> groups_;  // per rank: of its last action
  static constexpr double never = -std::numeric_limits<double>::infinity();
  std::vector<double> gathered_;  // per stage: earliest end of its first forward
  std::vector<double> host_;  // per rank: when its host has issued all actions so far, without messages between ranks
  double slower_ = 1;         // hosts do not become faster with GPUs: a walk's seconds are scaled by fastest_gpu
  std::vector<double> forward_at_, backward_at_, forward_lane_, backward_lane_;
};

}  // namespace

double Together::chain(const StageCosts& costs, int stage, Pass pass, bool delayed) {
  if (pass == Pass::forward) return costs.forward_s[stage];
  return costs.backward_s[stage] - (delayed || pass == Pass::input_grad ? costs.weight_s[stage] : 0);
}

void Together::add(const StageCosts& costs, int stage, Pass pass, bool delayed) {
  const bool forward = pass == Pass::forward;
  chain_ = std::max(chain_, chain(costs, stage, pass, delayed));
  compute_ += forward ? costs.forward_compute_s[stage]
                      : costs.backward_compute_s[stage] - (pass == Pass::input_grad ? costs.weight_s[stage] : 0);
  lanes_.add(forward ? costs.forward_lanes[stage] : costs.backward_lanes[stage]);
}

bool is_uniform(Parts& parts, const Step& step) {
  const Wiring& wires = parts.wiring(step.layout);
  return parts.fills_all_stages(step.layout) && parts.base.slices == 1 && all_on_one_machine(wires) &&
         are_alike(wires.tensor) && are_alike(wires.context) && are_alike(wires.expert) &&
         are_alike(wires.expert_tensor);
}

bool has_passes_bound(Parts& parts, const Step& step, int micro_batches) {
  const Placement& placement = parts.use_of(step, micro_batches).placement;
  return is_uniform(parts, step) && placement.copies == 1 && placement.rank.front() == 0;
}

std::vector<double> busy_seconds(Parts& parts, const Step& step, int micro_batches) {
  const StageCosts& costs = parts.costs_of(step);
  const ScheduleUse& use = parts.use_of(step, micro_batches);
  const auto alone = [&](int part, Pass pass) {
    Together action;
    action.add(costs, part, pass, step.delay_weight_grads);
    return action.seconds();
  };
  std::vector<double> busy(step.layout.pipeline, 0);
  for (int stage = 0; stage < use.placement.stages(); ++stage) {
    const int part = use.placement.part_of(stage);
    busy[use.placement.rank[stage]] += use.forwards[stage] * (alone(part, Pass::forward) + alone(part, Pass::backward));
  }
  for (const auto& [of, count] : use.pairs) {
    const int forward = use.placement.part_of(of.forward), backward = use.placement.part_of(of.backward);
    const Pass pass = of.whole ? Pass::backward : Pass::input_grad;
    Together pair;
    pair.add(costs, forward, Pass::forward, false);
    pair.add(costs, backward, pass, step.delay_weight_grads);
    busy[use.placement.rank[of.forward]] +=
        count * (pair.seconds() - alone(forward, Pass::forward) - alone(backward, pass));
  }
  return busy;
}

double passes_seconds(StepEstimator::Parts& parts, const Step& step, int micro_batches, const ActionLists& lists,
                      double lead) {
  return Replay(parts, step, micro_batches, lead).run(lists);
}

}  // namespace slipway::schedules
