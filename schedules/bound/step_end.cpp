#include "schedules/bound/step_end.h"

#include <algorithm>
#include <utility>

#include "models/machine/cost.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/message_price.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {
namespace {

using Parts = StepEstimator::Parts;

int data_degree(const Layout& layout) { return layout.data * layout.context; }

// An action is cut into segments, so what happens per block need not wait for a whole stage. `reduces`: gradients may
// be reduced during the action.
bool is_cut(const Step& step, bool reduces) {
  const Layout& layout = step.layout;
  return layout.tensor > 1 || layout.context > 1 || dispatches_tokens(step) || layout.zero >= 2 ||
         step.recompute == Recompute::full || (reduces && step.overlap_grad_reduce);
}

// The same for the first forward of a stage.
bool cuts_first_forward(Parts& parts, const Step& step, int stage) {
  return is_cut(step, false) ||
         (is_cut(step, true) && parts.use_of(step, micro_batches_of(step)).last_backward[stage] == 0);
}

// Seconds of the optimizer of one stage, with its casts of weights.
double stage_update_seconds(const Step& step, const StageCosts& costs, int stage, const Machine& machine) {
  const BlockElements& held = costs.elements[stage];
  return overhead_of(machine) +
         machine.constants.whole * (update_seconds(step.optimizer, shard_of(held, step.layout), step.dtype, machine) +
                                    cast_seconds(machine, weight_cast_bytes(step, held)));
}

double once_a_step(const Machine& machine) { return machine.constants.whole * machine.constants.fixed; }

// Parameters that the first segment of the next step's first forward of stage q waits for.
double first_gather(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Layout& layout = step.layout;
  if (layout.zero < 1 || data_degree(layout) == 1) return 0;
  const bool waits_for_all = layout.zero <= 2 && !step.overlap_param_gather;
  const auto& messages = costs.messages[parts.wiring(layout).alike[q]];
  double seconds = 0;
  for (int chunk = 0; chunk < (waits_for_all ? layout.chunks : 1); ++chunk)
    for (const auto [run, count] : parts.split_of(layout)[chunk * layout.pipeline + q]) {
      if (!waits_for_all && cuts_first_forward(parts, step, q)) return messages[run].gather;
      seconds += count * messages[run].gather;
    }
  return seconds;
}

double tied_seconds(Parts& parts, const Step& step) {
  const Layout& layout = step.layout;
  if (!parts.tied || layout.pipeline == 1 || step.levers.lora.rank > 0) return 0;
  // Sharded gradients are summed by all replicas of both stages together: on a ring no sooner than by two members, but
  // on all ports of a node perhaps. And the two may be a weak pair, around which the ring goes.
  const bool by_replicas = layout.zero >= 2 && layout.data * layout.context > 1;
  const Algorithm algorithm = parts.cluster.algorithms[static_cast<std::size_t>(Axis::embedding)];
  if (by_replicas && (algorithm != Algorithm::ring || !parts.cluster.weak_pairs.empty())) return 0;
  const Block& head = parts.base.model->runs.back().block;
  const double elements = static_cast<double>(head.vocab) / layout.tensor * static_cast<double>(head.hidden);
  return sent_seconds(
      layout,
      message(WorkKind::tied_grad_reduce, Collective::all_reduce, elements * bytes_of(parts.base.gradient_dtype)), 2,
      parts.wiring(layout).embedding);
}

// Seconds of one block in a whole backward, or in a weight gradient.
double block_seconds(const BlockPrice& price, const StageCosts::RunMessages& messages, Pass pass, double overhead) {
  if (pass == Pass::weight_grad) return price.weight_s + (price.cuts + 1) * overhead;
  return price.backward_s + price.cuts * overhead + messages.tensor_backward + messages.context_backward;
}

// Largest of  Σ(j≤i) red(j) − Σ(j<i) B(j)  over the blocks i of stage q. Within a run of equal blocks it is linear in
// i, so the ends of the runs are enough. Segments of a weight gradient hold only blocks with such gradients.
double exposed_reduction(Parts& parts, const Step& step, const StageCosts& costs, int q, Pass last_pass) {
  const Layout& layout = step.layout;
  const bool whole = last_pass == Pass::backward, cut = is_cut(step, true);
  const double tied = whole && q == 0 ? tied_seconds(parts, step) : 0;
  if (data_degree(layout) == 1) return tied;
  const Wiring& wires = parts.wiring(layout);
  const std::vector<BlockPrice>& prices = parts.prices_of(step, wires.machine_group[q]);
  const double overhead = overhead_of(parts.cluster.groups[wires.machine_group[q]].machine);
  double lane = 0, before = 0, most = 0;  // `before`: the pass of the blocks before, as StageCosts counts it
  for (const auto [run, count] : parts.split_of(layout)[q]) {
    const BlockPrice& price = prices[run];
    if (!whole && price.weight_s <= 0) continue;
    const StageCosts::RunMessages& messages = costs.messages[wires.alike[q]][run];
    const double reduce = messages.reduce(layout);
    const double block = cut ? block_seconds(price, messages, last_pass, overhead) : 0;
    if (lane == 0) {
      most = tied + reduce;
      before = whole && cut ? overhead : 0;
    }
    most = std::max({most, lane + reduce - before, lane + count * reduce - before - (count - 1) * block});
    lane += count * reduce;
    before += count * block;
  }
  return most;
}

}  // namespace

double shard_of(const BlockElements& held, const Layout& layout) {
  const auto dense = static_cast<double>(held.trained()), experts = static_cast<double>(held.trained_experts());
  return layout.zero == 0 ? dense + experts : dense / shards_of(layout) + experts / expert_data_of(layout);
}

Update update_of(const Step& step, const StageCosts& costs, int q, const Machine& machine) {
  const Layout& layout = step.layout;
  Update update{once_a_step(machine), 0, 0};
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const int stage = chunk * layout.pipeline + q;
    (chunk == 0 ? update.first : update.later) += stage_update_seconds(step, costs, stage, machine);
    update.held += shard_of(costs.elements[stage], layout);
  }
  return update;
}

double ahead_of_first(const Machine& machine) {
  constexpr int launches_behind_the_norm = 2;
  return has_host(machine) ? launches_behind_the_norm * host_seconds(WorkKind::transfer, 2, Axis::pipeline, machine)
                           : 0;
}

bool gathers_beside(const Step& step) {
  const Layout& l = step.layout;
  return l.zero >= 1 && l.zero <= 2 && data_degree(l) > 1 && step.overlap_param_gather;
}

double seconds_to_first(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Update update = update_of(step, costs, q, parts.machine_of(step.layout, q));
  return update.first + std::max(update.later, first_gather(parts, step, costs, q));
}

double gathered_forward(Parts& parts, const Step& step, const StageCosts& costs, int stage, double& gathered) {
  const Layout& l = step.layout;
  const int q = stage % l.pipeline;
  const Wiring& wires = parts.wiring(l);
  const std::vector<BlockPrice>& price = parts.prices_of(step, wires.machine_group[q]);
  const auto& messages = costs.messages[wires.alike[q]];
  const double overhead = overhead_of(parts.cluster.groups[wires.machine_group[q]].machine);
  double left = costs.forward_s[stage] - overhead, end = 0;
  for (const auto [run, count] : parts.split_of(l)[stage]) {
    const double gather = messages[run].gather;
    const double block = price[run].forward_s + price[run].cuts * overhead + messages[run].tensor_forward +
                         messages[run].context_forward;
    end = std::max({end, gathered + gather + left, gathered + count * gather + left - (count - 1) * block});
    gathered += count * gather;
    left -= count * block;
  }
  return cuts_first_forward(parts, step, stage) ? end : gathered + costs.forward_s[stage];
}

double gathered_late(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  if (!gathers_beside(step)) return 0;
  double gathered = update_of(step, costs, q, parts.machine_of(step.layout, q)).first;
  const double end = gathered_forward(parts, step, costs, q, gathered);
  return std::max(0.0, end - seconds_to_first(parts, step, costs, q) - costs.forward_s[q]);
}

double own_norm_seconds(const Parts& parts, const Machine& machine, double elements) {
  return overhead_of(machine) +
         machine.constants.whole * norm_seconds(machine, elements * bytes_of(parts.base.gradient_dtype));
}

StepEndSeconds split_end(Parts& parts, const Step& step, const StageCosts& costs, const ScheduleUse& use, int q,
                         bool reduces) {
  const Machine& machine = parts.machine_of(step.layout, q);
  StepEndSeconds end;
  end.optimizer = once_a_step(machine);
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[stage] == q) end.optimizer += stage_update_seconds(step, costs, stage, machine);
  if (reduces) end.data = exposed_reduction(parts, step, costs, q, Pass::weight_grad);
  return end;
}

StepEndSeconds step_end(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Layout& layout = step.layout;
  const Machine& machine = parts.machine_of(layout, q);
  const auto [first, later, held] = update_of(step, costs, q, machine);
  const double gather = std::max(0.0, first_gather(parts, step, costs, q) - later);
  const double last =
      data_degree(layout) == 1
          ? 0
          : costs.messages[parts.wiring(layout).alike[q]][parts.split_of(layout)[q].front().run].reduce(layout);
  StepEndSeconds end{exposed_reduction(parts, step, costs, q, Pass::backward) + gather, last + gather, first + later};
  if (joins_all_ranks(parts.base))
    end.optimizer += own_norm_seconds(parts, machine, held) + parts.norm_sum_seconds(rank_count(layout));
  return end;
}

// A reduction runs beside the block after the one that made its gradient, and so does the gather of the block after that
// one, where blocks have one segment: not beside recomputation, behind which it begins. The products there lose what
// each_loss_beside (durations.h) says: in a block with messages m and products p at least min(m x/(1 + x), p x). Left out
// are those at the ends of a run of like blocks, beside which something else may run: in a forward the last block, in a
// backward two (they may have one segment).
std::vector<Lost> lost_beside_messages(Parts& parts, const Step& step, const StageCosts& costs) {
  const Layout& l = step.layout;
  const auto& stages = parts.split_of(l);
  std::vector<Lost> lost(stages.size());
  const bool tasks_between = step.worker_norms || uses_kfac(step), each_micro_batch = l.zero >= 2;
  if (data_degree(l) == 1 || tasks_between) return lost;
  // A block may wait for the messages of the one before; or there are none before the last block's.
  if (each_micro_batch ? dispatches_tokens(step) : !step.overlap_grad_reduce) return lost;
  const Wiring& wires = parts.wiring(l);
  const double steps = micro_batches_of(step);
  const bool is_gathered = l.zero >= 3 && step.levers.recomputed.bits == 0;
  const bool waits_for_tied = parts.tied && l.pipeline > 1;
  const std::vector<BlockRun>& base_runs = parts.base.model->runs;
  int group = -1;
  const std::vector<BlockPrice>* prices = nullptr;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const int q = static_cast<int>(stage) % l.pipeline;
    const Machine& machine = parts.cluster.groups[wires.machine_group[q]].machine;
    if (!machine.trained) continue;
    if (std::exchange(group, wires.machine_group[q]) != wires.machine_group[q]) prices = &parts.prices_of(step, group);
    const double longer = machine.constants.beside, share = longer / (1 + longer);
    double forward = 0, backward = 0, reductions = 0;
    for (const auto [run, count] : stages[stage]) {
      const BlockPrice& price = (*prices)[run];
      const StageCosts::RunMessages& messages = costs.messages[wires.alike[q]][run];
      const double reduce = messages.reduce(l);
      // The gradients of a tied table's copies are summed first, behind everything.
      if (!waits_for_tied || base_runs[static_cast<std::size_t>(run)].block.kind == BlockKind::transformer)
        reductions += count * reduce;
      if (count == 1) continue;
      const bool gathers = is_gathered && price.cuts == 0;
      const double gather = gathers ? messages.gather : 0;
      forward += (count - 1) * std::min(gather * share, price.forward_s * longer);
      const double products_s = gathers ? price.backward_s - price.again_s : price.backward_s;
      backward += (count - 2) * std::min((gather + reduce) * share, products_s * longer);
    }
    if (each_micro_batch)
      lost[stage] = {forward, backward, 0, steps * (forward + backward), 0};
    else  // a product may wait for tokens, and then nothing of what was sent before them is left
      lost[stage] = {0, 0, backward, backward, dispatches_tokens(step) ? 0 : reductions * share - backward};
  }
  return lost;
}

double data_lane_seconds(Parts& parts, const Step& step, int q) {
  const Layout& layout = step.layout;
  if (layout.zero < 2 || data_degree(layout) == 1) return 0;
  const auto& messages = parts.costs_of(step).messages[parts.wiring(layout).alike[q]];
  const auto& stages = parts.split_of(layout);
  double lane = 0, largest = 0;
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    for (const auto [run, count] : stages[chunk * layout.pipeline + q]) {
      const double gather = layout.zero >= 3 ? messages[run].gather : 0;
      lane += count * (messages[run].reduce(layout) + 2 * gather);
      largest = std::max(largest, gather);
    }
  }
  // Two gathers may be fetched before the step's first task; the next step's first one is inside.
  return lane * micro_batches_of(step) - 2 * largest;
}

}  // namespace slipway::schedules
