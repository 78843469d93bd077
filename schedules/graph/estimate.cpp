#include "schedules/graph/estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
std::size_t at(int i) { return static_cast<std::size_t>(i); }

double send_seconds(const LinkPath& path, double bytes) { return path.latency + bytes / path.bandwidth; }

StepTerms pace_of(const StageCosts& costs, int q, int micro_batches, const StepEndSeconds& end) {
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

// (4) of estimate.h.
void bound_shared_gpus(Parts& parts, const LayoutChoice& choice, int m, StepEstimate& estimate) {
  const Cluster& cluster = parts.cluster;
  const bool all_wait = choice.layout.tensor == 1 || joins_all_ranks(parts.base);
  if (cluster.ranks_per_gpu == 1 || cluster.groups.size() > 1 || !all_wait) return;
  const StageCosts& costs = parts.costs_of(choice);
  const int ranks = rank_count(choice.layout), members = ranks / choice.layout.pipeline;
  std::map<std::pair<int, int>, double> busy;  // by node and GPU
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place = place_of(cluster, rank);
    keep_larger(estimate, {busy[{place.node, place.gpu}] += m * costs.compute_s[at(rank / members)], 0, 0, 0, 0, 0});
  }
}

// (1) to (4) of estimate.h.
void bound_time(Parts& parts, const LayoutChoice& choice, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(choice);
  const Wiring& wires = parts.wiring(choice.layout);
  if (!parts.use_of(choice, m).is_plain) return bound_compute(parts, choice, m, estimate);
  bound_shared_gpus(parts, choice, m, estimate);
  double fill = 0;  // other stages before and after rank q, sends included
  StepEndSeconds first_end;
  for (int q = 0; q < choice.layout.pipeline; ++q) {
    const StepEndSeconds end = step_end(parts, choice, costs, q);
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
  if (!use.is_plain && (!is_split(*parts_, choice, m) || !all_on_one_machine(parts_->wiring(choice.layout)))) return bound;
  const ActionLists lists = choice.schedule->actions(shape);
  const StageCosts& costs = parts_->costs_of(choice);
  const Action& last = lists.front().back();
  const bool ends_with_weights = last.pass == Pass::weight_grad && last.stage == 0;
  const StepEndSeconds end = use.is_plain ? step_end(*parts_, choice, costs, 0) : split_end(*parts_, choice, costs, use, 0, ends_with_weights);
  return std::max(bound, parts_->fastest_gpu * (passes_seconds(*parts_, choice, m, lists) + end.data + end.optimizer));
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
