#include "schedules/bound/estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "schedules/bound/estimate_parts.h"
#include "schedules/bound/passes_bound.h"
#include "schedules/bound/step_end.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/time/host_issue.h"

namespace slipway::schedules {
namespace {

using Parts = StepEstimator::Parts;

StepTerms pace_of(const StageCosts& costs, int q, int micro_batches, double blocked, const StepEndSeconds& end) {
  const double m = micro_batches;
  return {m * costs.compute_s[q], m * costs.tensor_s[q], m * costs.context_s[q], blocked, end.data, end.optimizer, 0};
}

double sum_of(const StepTerms& t) {
  return t.compute + t.tensor + t.context + t.pipeline + t.data + t.optimizer + t.host;
}

void keep_larger(StepEstimate& estimate, const StepTerms& terms) {
  const double sum = sum_of(terms);
  if (sum <= estimate.bound_s) return;
  estimate.bound_s = sum;
  estimate.terms = terms;
}

// GPUs that are faster than their profile shorten compute. To shorten all of it is still a lower bound.
void scale(StepEstimate& estimate, double factor) {
  StepTerms& t = estimate.terms;
  for (double* term : {&estimate.bound_s, &t.compute, &t.tensor, &t.context, &t.pipeline, &t.data, &t.optimizer})
    *term *= factor;
}

// A schedule that is not plain: the compute of a rank's forwards with their backwards, and what collectives add to it.
// (An input gradient and its weight gradient take at least as long as the whole backward; a later slice at least as long
// as the first.)
void bound_busy(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  if (!all_on_one_machine(parts.wiring(step.layout))) return;
  const StageCosts& costs = parts.costs_of(step);
  const ScheduleUse& use = parts.use_of(step, m);
  std::vector<double> compute(step.layout.pipeline, 0);
  for (int stage = 0; stage < use.placement.stages(); ++stage) {
    const int part = use.placement.part_of(stage);
    compute[use.placement.rank[stage]] +=
        use.forwards[stage] * (costs.forward_compute_s[part] + costs.backward_compute_s[part]);
  }
  const bool uniform = is_uniform(parts, step);
  const std::vector<double> busy = uniform ? busy_seconds(parts, step, m) : compute;
  for (int q = 0; q < step.layout.pipeline; ++q) {
    StepTerms terms{.compute = compute[q]};
    (step.layout.tensor > 1 || step.layout.context == 1 ? terms.tensor : terms.context) = busy[q] - compute[q];
    if (uniform && use.placement.copies == 1) terms.optimizer = split_end(parts, step, costs, use, q, false).optimizer;
    keep_larger(estimate, terms);
  }
}

// (4) of estimate.h.
void bound_shared_gpus(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const PricedCluster& cluster = parts.cluster;
  const bool all_wait = step.layout.tensor == 1 || joins_all_ranks(parts.base);
  const bool on_cores = are_processors(cluster.groups);  // whose ranks do not halve each other's speed
  if (cluster.ranks_per_gpu == 1 || cluster.groups.size() > 1 || on_cores || !all_wait) return;
  const StageCosts& costs = parts.costs_of(step);
  const int ranks = rank_count(step.layout), members = ranks / step.layout.pipeline;
  std::map<std::pair<int, int>, double> busy;  // by node and GPU
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place = place_of(cluster, rank);
    keep_larger(estimate, {.compute = busy[{place.node, place.gpu}] += m * costs.compute_s[rank / members]});
  }
}

// Seconds in which a rank waits until its messages to other stages are sent, all but the last. Plain schedules only.
double blocked_seconds(const StageCosts& costs, const Wiring& wires, const Step& step, int q, int m) {
  const int p = step.layout.pipeline;
  if (!step.blocking_transfers || p == 1) return 0;
  const int forwards = m * (step.layout.chunks - (q == p - 1 ? 1 : 0));
  const int backwards = m * (step.layout.chunks - (q == 0 ? 1 : 0)) - (q == 0 ? 0 : 1);  // the list ends with a send
  return forwards * sent_seconds(step.layout, costs.send, 2, wires.to_next[q]) +
         backwards * sent_seconds(step.layout, costs.send, 2, wires.to_previous[q]);
}

// Seconds that products of rank q lose in a step beside messages of their data group. With the rank's actions, more of
// it is certain: what is left of a stage's reductions when its last backward ends runs beside the actions that follow.
double lost_in_step(Parts& parts, const Step& step, const StageCosts& costs, const std::vector<Lost>& stages, int q,
                    const std::vector<Action>* list) {
  const Layout& l = step.layout;
  double lost = 0, unused = 0;
  for (int stage = q; stage < l.pipeline * l.chunks; stage += l.pipeline) {
    lost += stages[stage].step;
    unused += stages[stage].unused;
  }
  if (list == nullptr || unused == 0) return lost;
  std::vector<int> backwards(static_cast<std::size_t>(l.chunks), micro_batches_of(step));
  const double longer = parts.machine_of(l, q).constants.beside;
  double left = 0;
  for (const Action& action : *list) {
    const Lost& own = stages[action.stage];
    const bool forward = action.pass == Pass::forward,
               is_last = !forward && --backwards[action.stage / l.pipeline] == 0;
    const double products_s = (forward ? costs.forward_compute_s : costs.backward_compute_s)[action.stage];
    const double used = std::clamp(longer * products_s - (is_last ? own.last_backward : 0), 0.0, left);
    lost += used;
    left += (is_last ? own.unused : 0) - used;
  }
  return lost;
}

// (1) to (4) of estimate.h. `lists`: of a plain schedule, to be sharper.
void bound_time(Parts& parts, const Step& step, int m, StepEstimate& estimate, const ActionLists* lists = nullptr) {
  const StageCosts& costs = parts.costs_of(step);
  const Wiring& wires = parts.wiring(step.layout);
  if (!parts.use_of(step, m).is_plain || !parts.fills_all_stages(step.layout))
    return bound_busy(parts, step, m, estimate);
  bound_shared_gpus(parts, step, m, estimate);
  const std::vector<Lost> beside = lost_beside_messages(parts, step, costs);
  double fill = 0;  // other stages before and after rank q, sends included
  StepEndSeconds first_end;
  double first_late = 0;
  for (int q = 0; q < step.layout.pipeline; ++q) {
    const StepEndSeconds end = step_end(parts, step, costs, q);
    if (q == 0) first_end = end;
    const double blocked = blocked_seconds(costs, wires, step, q, m);
    const double late = gathered_late(parts, step, costs, q);
    if (q == 0) first_late = late;
    StepTerms paced = pace_of(costs, q, m, blocked, end);
    paced.data += late;
    keep_larger(estimate, paced);
    const double lost = lost_in_step(parts, step, costs, beside, q, lists == nullptr ? nullptr : &(*lists)[q]);
    StepTerms slowed = pace_of(costs, q, m, blocked, {end.last_data, end.last_data, end.optimizer});
    slowed.compute += lost;
    slowed.data += late;
    keep_larger(estimate, slowed);
    if (q > 0) {
      StepTerms through = pace_of(costs, q, m, blocked, first_end);
      through.compute += lost;
      through.pipeline += fill;
      through.data += first_late;
      keep_larger(estimate, through);
    }
    const double lane = data_lane_seconds(parts, step, q);
    if (lane > estimate.bound_s) {
      StepTerms busy = pace_of(costs, q, m, blocked, end);
      busy.data = lane - (sum_of(busy) - busy.data);
      keep_larger(estimate, busy);
    }
    if (q + 1 == step.layout.pipeline) break;
    // The tail begins within the last backward of stage 0.
    fill += beside[q].forward + (q > 0 ? beside[q].backward + beside[q].last_backward : 0);
    fill += costs.forward_s[q] + costs.backward_s[q] - costs.early_s[q] +
            sent_seconds(step.layout, costs.send, 2, wires.to_next[q]) +
            sent_seconds(step.layout, costs.send, 2, wires.to_previous[q + 1]);
  }
}

// Seconds of the hosts of all pipeline ranks in a step, without the norm.
struct HostWork {
  double seconds = 0;   // for segments and the collectives between them
  double launches = 0;  // of other messages and updates
};
std::vector<HostWork> host_work(Parts& parts, const Step& step, const ScheduleUse& use) {
  const Layout& l = step.layout;
  const StageCosts& costs = parts.costs_of(step);
  const Placement& placement = use.placement;
  std::vector<HostWork> ranks(l.pipeline);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const int part = placement.part_of(stage);
    const double times = use.forwards[stage];
    const auto leaves_for = [&](int to) { return placement.rank[to] != placement.rank[stage] ? 1 : 0; };
    const int neighbours = (placement.is_first(stage) ? 0 : leaves_for(stage - 1)) +
                           (placement.is_last(stage) ? 0 : leaves_for(stage + 1));
    HostWork& work = ranks[placement.rank[stage]];
    work.seconds += times * (costs.host_forward_s[part] + costs.host_backward_s[part]);
    work.launches += 2 * times * neighbours + 1;
    if (l.data * l.context == 1) continue;
    int blocks = 0;
    for (const RunCount& run : parts.split_of(l)[part]) blocks += run.count;
    work.launches += blocks * ((l.zero >= 2 ? times : 1) + (l.zero == 3 ? 2 * times : l.zero >= 1 ? 1 : 0));
  }
  return ranks;
}

// (5) of estimate.h. Where there are other stages, some of their messages may be issued after a rank's own norm.
void bound_hosts(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const Wiring& wires = parts.wiring(step.layout);
  const ScheduleUse& use = parts.use_of(step, m);
  const int p = step.layout.pipeline, ranks = rank_count(step.layout);
  if (!use.is_plain && !all_on_one_machine(wires)) return;
  const bool joins = joins_all_ranks(parts.base);
  std::vector<HostWork> work;
  for (int q = 0; q < p; ++q) {
    const Machine& machine = parts.cluster.groups[wires.machine_group[q]].machine;
    if (!has_host(machine) || (!joins && q != use.placement.rank.front())) continue;
    if (work.empty()) work = host_work(parts, step, use);
    const double launch = host_seconds(WorkKind::transfer, 2, Axis::pipeline, machine);
    double host = work[q].seconds + work[q].launches * launch;
    if (joins) {
      double held = 0;
      for (const BlockElements& stage : parts.costs_of(step).elements) held += shard_of(stage, step.layout);
      const double own = own_norm_seconds(parts, machine, step.layout.zero >= 1 ? held / p : held);
      host += std::max(p == 1 ? parts.fastest_gpu * own : 0, ranks > 1 ? 2 * launch : launch) +
              parts.norm_sum_seconds(ranks);
    }
    keep_larger(estimate, {.host = host});
  }
}

void bound_memory(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(step);
  const Wiring& wires = parts.wiring(step.layout);
  const ScheduleUse& use = parts.use_of(step, m);
  const int p = step.layout.pipeline;
  const std::vector<StaticBytes> of_kfac = uses_kfac(step) ? static_bytes_of(step) : std::vector<StaticBytes>{};
  estimate.memory_share = -1;
  for (int q = 0; q < p; ++q) {
    BlockElements elements;
    double kept = 0;
    for (int stage = 0; stage < use.placement.stages(); ++stage) {
      if (use.placement.rank[stage] != q) continue;
      const std::size_t part = use.placement.part_of(stage);
      elements += costs.elements[part];
      if (use.is_plain) kept += use.in_flight[q][stage / p] * costs.kept_bytes[part];
    }
    // K-FAC has inverses in place of moments, a share on each replica.
    const StaticBytes fixed =
        of_kfac.empty() ? static_bytes_of(elements, step, use.placement.copies) : of_kfac[static_cast<std::size_t>(q)];
    const double bytes =
        fixed.weights + parts.least_gradients * fixed.gradients + fixed.optimizer + parts.least_kept * kept;
    const double capacity = parts.cluster.groups[wires.machine_group[q]].machine.memory_bytes;
    const double share = capacity > 0 ? bytes / capacity : std::numeric_limits<double>::infinity();
    if (share <= estimate.memory_share) continue;
    estimate.memory_bytes = bytes;
    estimate.memory_share = share;
    estimate.memory_rank = q;
  }
}

}  // namespace

StepEstimator::StepEstimator(Step base, const PricedCluster& cluster, const MemoryConstants& trainer)
    : parts_(std::make_unique<Parts>(std::move(base), cluster)) {
  if (trainer.facts.gradient_bytes > 0)
    parts_->least_gradients = std::min(1.0, trainer.facts.gradient_bytes / bytes_of(parts_->base.gradient_dtype));
  parts_->facts = trainer.facts;
  parts_->least_kept = std::min({1.0, trainer.layer_factor, trainer.norm_copy_bytes / 8, trainer.score_bytes / 5,
                                 trainer.fused_score_bytes / 5, trainer.logit_bytes / 4, trainer.plain_logit_bytes / 4,
                                 trainer.fused_logit_bytes / 4});
}
StepEstimator::StepEstimator(StepEstimator&& other) noexcept = default;
StepEstimator::~StepEstimator() = default;

StepEstimate StepEstimator::estimate(const Step& step) {
  const int m = micro_batches_of(step);
  StepEstimate estimate;
  bound_time(*parts_, step, m, estimate);
  scale(estimate, parts_->fastest_gpu);
  bound_hosts(*parts_, step, m, estimate);
  bound_memory(*parts_, step, m, estimate);
  return estimate;
}

double StepEstimator::passes_bound(const Step& step) {
  double bound = estimate(step).bound_s;
  const int m = micro_batches_of(step);
  const ScheduleUse& use = parts_->use_of(step, m);
  if (!parts_->fills_all_stages(step.layout)) return bound;  // what an empty stage hands on waits for nothing
  if (!use.is_plain && !has_passes_bound(*parts_, step, m)) return bound;
  const ActionLists lists = undelayed_lists(step);
  const StageCosts& costs = parts_->costs_of(step);
  if (use.is_plain && step.layout.chunks > 1) {
    StepEstimate sharper;
    bound_time(*parts_, step, m, sharper, &lists);
    bound = std::max(bound, parts_->fastest_gpu * sharper.bound_s);
  }
  const Action& last = lists.front().back();
  const bool ends_with_weights = last.pass == Pass::weight_grad && last.stage == 0;
  const StepEndSeconds end =
      use.is_plain ? step_end(*parts_, step, costs, 0) : split_end(*parts_, step, costs, use, 0, ends_with_weights);
  return std::max(bound, parts_->fastest_gpu * (passes_seconds(*parts_, step, m, lists, end.data + end.optimizer) +
                                                end.data + end.optimizer));
}

}  // namespace slipway::schedules
