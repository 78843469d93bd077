#include "schedules/graph/estimate.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

double send_seconds(const LinkPath& path, double bytes) { return path.latency + bytes / path.bandwidth; }

StepTerms pace_of(const StageCosts& costs, int q, int micro_batches, const StepEnd& end) {
  const double m = micro_batches;
  return {m * costs.compute_s[at(q)],
          m * costs.tensor_s[at(q)],
          m * costs.context_s[at(q)],
          0,
          end.data,
          end.optimizer};
}

double sum_of(const StepTerms& t) {
  return t.compute + t.tensor + t.context + t.pipeline + t.data + t.optimizer;
}

void keep_larger(StepEstimate& estimate, const StepTerms& terms) {
  const double sum = sum_of(terms);
  if (sum <= estimate.bound_s) return;
  estimate.bound_s = sum;
  estimate.terms = terms;
}

// GPUs that are faster than their profile shorten compute; that all of it were shortened is still a lower bound.
void scale(StepEstimate& estimate, double factor) {
  StepTerms& t = estimate.terms;
  for (double* term : {&estimate.bound_s, &t.compute, &t.tensor, &t.context, &t.pipeline, &t.data, &t.optimizer})
    *term *= factor;
}

bool all_on_one_machine(const Wiring& wires) {
  return std::all_of(wires.machine_group.begin(), wires.machine_group.end(),
                     [&](int group) { return group == wires.machine_group.front(); });
}

// A schedule that is not plain: the compute of a rank's forwards with their backwards. (An input gradient and
// its weight gradient take at least as long as the whole backward; a later slice as the first.)
void bound_compute(Parts& parts, const LayoutChoice& choice, int m, StepEstimate& estimate) {
  if (!all_on_one_machine(parts.wiring(choice.layout))) return;
  const StageCosts& costs = parts.costs_of(choice);
  const ScheduleUse& use = parts.use_of(choice, m);
  const bool split = is_split(parts, choice, m);
  std::vector<double> busy(at(choice.layout.pipeline), 0);
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    busy[at(use.placement.rank[at(stage)])] +=
        use.forwards[at(stage)] * costs.passes_s[at(use.placement.part_of(stage))];
  for (int q = 0; q < choice.layout.pipeline; ++q) {
    StepTerms terms{busy[at(q)], 0, 0, 0, 0, 0};
    if (split) {  // collectives within layers, of both groups
      (choice.layout.tensor > 1 ? terms.tensor : terms.context) = split_busy_seconds(parts, choice, m, q) - busy[at(q)];
      terms.optimizer = split_end(parts, choice, costs, use, q, false).optimizer;
    }
    keep_larger(estimate, terms);
  }
}

// (1), (2) and (3) of estimate.h.
void bound_time(Parts& parts, const LayoutChoice& choice, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(choice);
  const Wiring& wires = parts.wiring(choice.layout);
  if (!parts.use_of(choice, m).is_plain) return bound_compute(parts, choice, m, estimate);
  double fill = 0;  // other stages before and after rank q, sends included
  StepEnd first_end;
  for (int q = 0; q < choice.layout.pipeline; ++q) {
    const StepEnd end = step_end(parts, choice, costs, q);
    if (q == 0) first_end = end;
    keep_larger(estimate, pace_of(costs, q, m, end));
    StepTerms through = pace_of(costs, q, m, first_end);
    through.pipeline = fill;
    keep_larger(estimate, through);
    const double lane = data_lane_seconds(parts, choice, q);
    if (lane > estimate.bound_s) {
      StepTerms busy = pace_of(costs, q, m, end);
      busy.data = lane - (sum_of(busy) - busy.data);
      keep_larger(estimate, busy);
    }
    if (q + 1 == choice.layout.pipeline) break;
    fill += costs.forward_s[at(q)] + costs.backward_s[at(q)] - costs.early_s[at(q)] +
            send_seconds(wires.to_next[at(q)], costs.send_bytes) +
            send_seconds(wires.to_previous[at(q + 1)], costs.send_bytes);
  }
}

void bound_memory(Parts& parts, const LayoutChoice& choice, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(choice);
  const Wiring& wires = parts.wiring(choice.layout);
  const ScheduleUse& use = parts.use_of(choice, m);
  const int p = choice.layout.pipeline;
  estimate.memory_share = -1;
  for (int q = 0; q < p; ++q) {
    double elements = 0, kept = 0;
    for (int stage = 0; stage < use.placement.stages(); ++stage) {
      if (use.placement.rank[at(stage)] != q) continue;
      const std::size_t part = at(use.placement.part_of(stage));
      elements += costs.elements[part];
      if (use.is_plain) kept += use.in_flight[at(q)][at(stage / p)] * costs.kept_bytes[part];
    }
    const StaticBytes fixed = static_bytes_of(elements, choice.layout, parts.base.shape.dtype,
                                              parts.base.gradient_dtype, use.placement.copies);
    const double bytes =
        fixed.weights + parts.least_gradients * fixed.gradients + fixed.optimizer + parts.least_kept * kept;
    const double capacity = parts.cluster.groups[at(wires.machine_group[at(q)])].machine.memory_bytes;
    const double share = capacity > 0 ? bytes / capacity : std::numeric_limits<double>::infinity();
    if (share <= estimate.memory_share) continue;
    estimate.memory_bytes = bytes;
    estimate.memory_share = share;
    estimate.memory_rank = q;
  }
}

// One message lane per sender and direction, in the sender's order.
class ActionReplay {
 public:
  ActionReplay(const StageCosts& costs, const Wiring& wires, const ScheduleShape& shape)
      : costs_(costs),
        wires_(wires),
        p_(shape.pipeline),
        m_(shape.micro_batches),
        last_stage_(shape.pipeline * shape.chunks - 1),
        forward_at_(at((last_stage_ + 1) * m_), unknown),
        backward_at_(forward_at_) {}

  // End of the last backward of stage 0.
  double run(const ActionLists& lists) {
    std::vector<std::size_t> next(lists.size(), 0);
    std::vector<double> free(lists.size(), 0), forward_lane(lists.size(), 0),
        backward_lane(lists.size(), 0);
    for (int s = 0; s <= last_stage_; ++s)
      for (int j = 0; j < m_; ++j)
        if (s == 0) forward_at_[slot(s, j)] = 0;
    double end = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t q = 0; q < lists.size(); ++q) {
        for (; next[q] < lists[q].size(); ++next[q], moved = true) {
          const Action& action = lists[q][next[q]];
          const bool forward = action.pass == Pass::forward;
          const double ready =
              (forward ? forward_at_ : backward_at_)[slot(action.stage, action.micro_batch)];
          if (ready == unknown) break;
          const double early = forward ? 0 : costs_.early_s[at(action.stage)];
          free[q] = std::max(free[q] + early, ready) - early +
                    (forward ? costs_.forward_s : costs_.backward_s)[at(action.stage)];
          if (action.stage == 0 && !forward) end = free[q];
          hand_on(action, forward, free[q], forward ? forward_lane[q] : backward_lane[q], q);
        }
      }
    }
    return end;
  }

 private:
  static constexpr double unknown = -1;
  std::size_t slot(int stage, int micro_batch) const { return at(stage * m_ + micro_batch); }

  void hand_on(const Action& action, bool forward, double now, double& lane, std::size_t q) {
    if (forward && action.stage == last_stage_) {
      backward_at_[slot(action.stage, action.micro_batch)] = now;
      return;
    }
    if (!forward && action.stage == 0) return;
    if (p_ > 1) {
      const LinkPath& path = (forward ? wires_.to_next : wires_.to_previous)[q];
      now = lane = std::max(lane, now) + send_seconds(path, costs_.send_bytes);
    }
    (forward ? forward_at_ : backward_at_)[slot(action.stage + (forward ? 1 : -1), action.micro_batch)] =
        now;
  }

  const StageCosts& costs_;
  const Wiring& wires_;
  int p_, m_, last_stage_;
  std::vector<double> forward_at_, backward_at_;
};

}  // namespace

StepEstimator::StepEstimator(LoweringInput base, const Cluster& cluster, const MemoryConstants& trainer,
                             const Stack* stack)
    : parts_(std::make_unique<Parts>(std::move(base), cluster)) {
  if (trainer.gradient_bytes > 0)
    parts_->least_gradients = std::min(1.0, trainer.gradient_bytes / bytes_of(parts_->base.gradient_dtype));
  parts_->least_kept =
      std::min({1.0, trainer.layer_factor, trainer.norm_copy_bytes / 8, trainer.score_bytes / 5,
                trainer.fused_score_bytes / 5, trainer.logit_bytes / 4});
  if (stack != nullptr && stack->model != nullptr) parts_->stack = stack;
}
StepEstimator::StepEstimator(StepEstimator&& other) noexcept = default;
StepEstimator::~StepEstimator() = default;

StepEstimator StepEstimator::at_one_pace(const Cluster& paced) const {
  StepEstimator one(parts_->base, paced);
  one.parts_->least_gradients = parts_->least_gradients;
  one.parts_->least_kept = parts_->least_kept;
  one.parts_->fastest_gpu = parts_->fastest_gpu;
  return one;
}

StepEstimate StepEstimator::estimate(const LayoutChoice& choice) {
  if (choice.schedule == nullptr) throw std::invalid_argument("an estimate needs a schedule");
  if (parts_->stack != nullptr) {
    const Cluster paced = parts_->paced_for(choice);
    return at_one_pace(paced).estimate(choice);
  }
  const int m = parts_->micro_batches(choice);
  StepEstimate estimate;
  bound_time(*parts_, choice, m, estimate);
  scale(estimate, parts_->fastest_gpu);
  bound_memory(*parts_, choice, m, estimate);
  return estimate;
}

double StepEstimator::passes_bound(const LayoutChoice& choice) {
  if (parts_->stack != nullptr) {
    const Cluster paced = parts_->paced_for(choice);
    return at_one_pace(paced).passes_bound(choice);
  }
  const double bound = estimate(choice).bound_s;
  const int m = parts_->micro_batches(choice);
  const ScheduleUse& use = parts_->use_of(choice, m);
  const ScheduleShape shape{choice.layout.pipeline, choice.layout.chunks, m, parts_->base.slices, choice.schedule->copies};
  const StageCosts& costs = parts_->costs_of(choice);
  if (!use.is_plain) {
    if (!is_split(*parts_, choice, m) || !all_on_one_machine(parts_->wiring(choice.layout))) return bound;
    const ActionLists lists = choice.schedule->actions(shape);
    const Action& last = lists.front().back();
    const StepEnd end = split_end(*parts_, choice, costs, use, 0, last.pass == Pass::weight_grad && last.stage == 0);
    return std::max(bound, parts_->fastest_gpu *
                               (split_passes_seconds(*parts_, choice, m, lists) + end.data + end.optimizer));
  }
  const StepEnd end = step_end(*parts_, choice, costs, 0);
  const double passes =
      ActionReplay(costs, parts_->wiring(choice.layout), shape).run(choice.schedule->actions(shape));
  return std::max(bound, parts_->fastest_gpu * (passes + end.data + end.optimizer));
}

StepEstimate estimate_step(const LoweringInput& input, const Cluster& cluster) {
  if (input.actions != nullptr)
    throw std::invalid_argument("a schedule of a CSV has no closed form; name a schedule");
  const Schedule* schedule = schedule_named(input.schedule);
  if (schedule == nullptr) throw std::invalid_argument("no schedule is named " + input.schedule);
  return StepEstimator(input, cluster)
      .estimate({input.layout, schedule, input.shape.micro_batch, input.recompute});
}

}  // namespace slipway
