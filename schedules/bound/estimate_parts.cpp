#include "schedules/bound/estimate_parts.h"

#include <algorithm>
#include <stdexcept>

#include "models/machine/priced_cluster.h"
#include "models/model/parameters.h"
#include "schedules/memory/in_flight.h"
#include "schedules/step/placement.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"

namespace slipway::schedules {
namespace {

// Whole backwards of the rank's own stages, a backward of the first of them at the end.
bool is_plain(const std::vector<Action>& list, int rank, const ScheduleShape& shape) {
  const auto is_own = [&](const Action& action) {
    return action.stage % shape.pipeline == rank && action.stage / shape.pipeline < shape.chunks &&
           (action.pass == Pass::forward || action.pass == Pass::backward);
  };
  return std::all_of(list.begin(), list.end(), is_own) && !list.empty() && list.back().pass == Pass::backward &&
         list.back().stage == rank;
}

// Per chunk, where every micro-batch of the rank's own stages weighs the same. `no_bytes`: zeros, per stage. The forward
// of a pair may keep its last bytes when the backward has freed all: so the backward counts first.
std::vector<int> in_flight(std::vector<Action> list, int rank, const ScheduleShape& shape,
                           std::vector<HeldBytes>& no_bytes) {
  for (std::size_t i = 0; i + 1 < list.size(); ++i)
    if (list[i].with_next && list[i].pass == Pass::forward) std::swap(list[i], list[i + 1]), ++i;
  const auto weigh = [&](double bytes) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) no_bytes[rank + chunk * shape.pipeline].activations = bytes;
  };
  weigh(1);
  const std::vector<double> held = held_at_peak(list, no_bytes);
  weigh(0);
  std::vector<int> micro_batches;
  for (int chunk = 0; chunk < shape.chunks; ++chunk)
    micro_batches.push_back(static_cast<int>(held[rank + chunk * shape.pipeline]));
  return micro_batches;
}

std::map<ScheduleUse::Pair, int> pairs_in(const ActionLists& lists) {
  std::map<ScheduleUse::Pair, int> pairs;
  for (const auto& list : lists)
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      if (!list[i].with_next) continue;
      const bool forward_first = list[i].pass == Pass::forward;
      const Action &forward = list[forward_first ? i : i + 1], &backward = list[forward_first ? i + 1 : i];
      ++pairs[{forward.stage, backward.stage, backward.pass == Pass::backward}];
    }
  return pairs;
}

}  // namespace

ScheduleUse schedule_use(const ActionLists& lists, const ScheduleShape& shape) {
  ScheduleUse use{shape.slices == 1 && shape.copies == 1 && !has_pairs(lists),
                  pairs_in(lists),
                  {static_cast<std::size_t>(shape.pipeline), std::vector<int>(shape.chunks, 0)},
                  placement_of(lists, shape),
                  std::vector<int>(shape.stages(), 0),
                  std::vector<int>(shape.stages(), 0)};
  for (const auto& list : lists)
    for (const Action& action : list) {
      if (action.pass == Pass::forward)
        ++use.forwards[action.stage];
      else
        use.last_backward[action.stage] = action.micro_batch;
    }
  std::vector<HeldBytes> no_bytes(static_cast<std::size_t>(shape.stages()));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    use.is_plain &= is_plain(lists[rank], rank, shape);
    use.in_flight[rank] = in_flight(lists[rank], rank, shape, no_bytes);
  }
  return use;
}

StepEstimator::Parts::Parts(Step given, const PricedCluster& on)
    : base(std::move(given)), cluster(at_best(on)), fastest_gpu(slipway::schedules::fastest_gpu(on)) {
  int block = 0;
  for (const BlockRun& run : base.model->runs) {
    first_block.push_back(block);
    block += static_cast<int>(run.count);
  }
  tied = reads_table(base.model->runs.back().block);
}

StepEstimator::Parts::ShapeKey StepEstimator::Parts::shape_key(const Step& step, int group) {
  const Layout& l = step.layout;
  const NarrowHabits habits = narrow_habits(step);
  return {l.tensor,       l.sequence_parallel,         l.context, l.expert, l.expert_tensor, step.micro_batch,
          step.recompute, step.levers.recomputed.bits, habits,    group};
}

const std::vector<BlockPrice>& StepEstimator::Parts::prices_of(const Step& step, int group) {
  const ShapeKey key{shape_key(step, group)};
  const auto found = prices.find(key);
  if (found != prices.end()) return found->second;
  std::vector<BlockPrice> list;
  WorkShape shape = work_shape(step);
  shape.routing.skew = 0;  // balanced routing is no slower in any layer
  const std::vector<BlockRun>& runs = base.model->runs;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::size_t like = 0;  // layers that alternate are many runs of few blocks
    while (runs[like].block != runs[run].block) ++like;
    list.push_back(like < run ? list[like]
                              : block_price(base.model, first_block[run], shape, step.recompute,
                                            cluster.groups[group].machine, base.overlap_tensor));
  }
  return prices.emplace(key, std::move(list)).first->second;
}

const Wiring& StepEstimator::Parts::wiring(const Layout& l) {
  const std::tuple key{l.tensor, l.context, l.data, l.pipeline, l.expert, l.expert_tensor};
  const auto found = wirings.find(key);
  return found != wirings.end()
             ? found->second
             : wirings.emplace(key, wiring_of(cluster, l, token_traffic(base.model, l.dispatcher))).first->second;
}

const Machine& StepEstimator::Parts::machine_of(const Layout& layout, int pipeline_rank) {
  return cluster.groups[wiring(layout).machine_group[pipeline_rank]].machine;
}

const std::vector<std::vector<RunCount>>& StepEstimator::Parts::split_of(const Layout& layout) {
  const auto is_last = [&] {
    return last_split->first ==
           std::tuple<int, SplitKind, const std::vector<int>&>(stage_count(layout), layout.split, layout.split_list);
  };
  if (last_split != splits.end() && is_last()) return last_split->second;
  const SplitKey key = split_key(layout);
  last_split = splits.find(key);
  if (last_split != splits.end()) return last_split->second;
  std::vector<std::vector<RunCount>> counts;
  for (const BlockRange& range : split_blocks(base.model, layout)) {
    auto& stage = counts.emplace_back();
    for (int run = 0; run < static_cast<int>(first_block.size()); ++run) {
      const int begin = first_block[run], end = begin + static_cast<int>(base.model->runs[run].count);
      const int count = std::min(end, range.last) - std::max(begin, range.first);
      if (count > 0) stage.push_back({run, count});
    }
  }
  last_split = splits.emplace(key, std::move(counts)).first;
  return last_split->second;
}

bool StepEstimator::Parts::fills_all_stages(const Layout& layout) {
  const auto& stages = split_of(layout);
  return std::none_of(stages.begin(), stages.end(), [](const auto& stage) { return stage.empty(); });
}

const ScheduleUse& StepEstimator::Parts::use_of(const Step& step, int micro_batches) {
  const void* order = step.actions ? static_cast<const void*>(step.actions.get()) : &schedule_of(step);
  const std::tuple key{order, step.layout.pipeline, step.layout.chunks, micro_batches, step.delay_weight_grads};
  const auto found = uses.find(key);
  if (found != uses.end()) return found->second;
  ScheduleUse& use = uses.emplace(key, schedule_use(undelayed_lists(step), schedule_shape(step))).first->second;
  use.is_plain = use.is_plain && !step.delay_weight_grads && !step.actions && !step.own_schedule;
  return use;
}

bool StepEstimator::Parts::shares_table(const Step& step) {
  const Layout& l = step.layout;
  const auto on = [&](const Placement& placement) {
    return slipway::schedules::shares_table(base.model, l, placement);
  };
  if (l.pipeline == 1) return on({1, {0}});
  if (!tied || l.chunks == 1) return false;  // one stage a rank
  const ScheduleShape shape = schedule_shape(step);
  const bool is_runnable = step.actions != nullptr || !schedule_of(step).refuse(shape);
  return is_runnable && on(use_of(step, shape.micro_batches).placement);
}

const std::vector<BlockElements>& StepEstimator::Parts::elements_of_runs(const Step& step) {
  const Sharding cut = sharding_of(step.layout);
  const std::tuple key{cut.tensor, cut.expert, cut.expert_tensor, shares_table(step)};
  const auto found = run_elements.find(key);
  if (found != run_elements.end()) return found->second;
  std::vector<BlockElements> list;
  for (const int block : first_block) list.push_back(elements_of_block(step, block, std::get<3>(key)));
  return run_elements.emplace(key, std::move(list)).first->second;
}

double StepEstimator::Parts::norm_sum_seconds(int ranks) {
  if (ranks == 1) return 0;
  const auto found = norm_sums.find(ranks);
  if (found != norm_sums.end()) return found->second;
  const Work sum = message(WorkKind::norm_reduce, Collective::all_reduce, 8);
  return norm_sums.emplace(ranks, message_seconds(sum, ranks, world_path(cluster, ranks))).first->second;
}

const StageCosts& StepEstimator::Parts::costs_of(const Step& step) {
  const Layout& l = step.layout;
  const ShapeKey shape = shape_key(step, 0);
  const std::tuple key{shape, l.data, l.pipeline, split_key(l), shares_table(step), l.zero >= 3};
  if (costs && costs_key == key) return *costs;
  const Wiring& wires = wiring(l);
  const auto& stages = split_of(l);
  const std::vector<BlockElements>& elements = elements_of_runs(step);
  costs.emplace();
  StageCosts& c = *costs;
  const std::size_t p = l.pipeline;
  c.compute_s.assign(p, 0), c.tensor_s.assign(p, 0), c.context_s.assign(p, 0);
  c.send = message(WorkKind::transfer, Collective::send, boundary_bytes(base.model, work_shape(step)));
  c.messages.resize(p);
  for (std::size_t q = 0; q < p; ++q) {
    if (wires.alike[q] != static_cast<int>(q)) continue;
    const LinkPath &tensor = wires.tensor[q], &context = wires.context[q];
    const auto data_seconds = [&](WorkKind kind, Collective collective, double bytes) {
      return sent_seconds(l, message(kind, collective, bytes), shards_of(l), wires.data[q]);
    };
    const double segment = overhead_of(cluster.groups[wires.machine_group[q]].machine);
    const auto lanes_of = [&](const LayerMessages& in_tensor, const LayerMessages& in_context,
                              const TokenMessages& of) {
      return StageCosts::Lanes{
          seconds_over(tensor, in_tensor), seconds_over(context, in_context),
          seconds_over(wires.expert[q], of.out) + seconds_over(wires.expert[q], of.back),
          seconds_over(wires.expert_tensor[q], of.out_cut) + seconds_over(wires.expert_tensor[q], of.back_cut)};
    };
    // The part of the tokens' messages that the shared experts do not hide.
    const auto tokens_seconds = [&](const TokenMessages& of, const StageCosts::Lanes& lanes) {
      const double messages = lanes.expert + lanes.expert_tensor;
      if (of.shared_s <= 0 && of.gather.list.empty()) return messages;
      const double out = seconds_over(wires.expert[q], of.out) + seconds_over(wires.expert_tensor[q], of.out_cut);
      const double shared = of.shared_s > 0 ? of.shared_s + segment : 0;
      return std::max(seconds_over(tensor, of.gather), out - shared) + (messages - out);
    };
    const std::vector<BlockPrice>& list = prices_of(step, wires.machine_group[q]);
    for (std::size_t run = 0; run < list.size(); ++run) {
      const BlockPrice& price = list[run];
      StageCosts::RunMessages& of = c.messages[q].emplace_back();
      of.forward_lanes = lanes_of(price.tensor_forward, price.context_forward, price.tokens_forward);
      of.backward_lanes = lanes_of(price.tensor_backward, price.context_backward, price.tokens_backward);
      const double tokens = tokens_seconds(price.tokens_forward, of.forward_lanes);
      const bool is_again = is_recomputed(step.recompute, base.model->runs[run].block);
      const double again = is_again ? tokens : 0;
      of.tensor_forward = of.forward_lanes.tensor + tokens;
      of.tensor_backward = of.backward_lanes.tensor + tokens_seconds(price.tokens_backward, of.backward_lanes) + again;
      of.context_forward = of.forward_lanes.context;
      of.context_backward = of.backward_lanes.context;
      if (is_again) {  // those of layers are in the backward's already
        of.backward_lanes.expert += of.forward_lanes.expert;
        of.backward_lanes.expert_tensor += of.forward_lanes.expert_tensor;
      }
      of.again = seconds_over(tensor, price.tensor_again) + seconds_over(context, price.context_again) + again;
      if (l.data * l.context == 1) continue;
      // Experts on separate ranks: left out.
      const auto dense = static_cast<double>(l.zero >= 3 ? elements[run].dense : elements[run].trained());
      const bool has_linears = l.zero >= 3 || step.levers.lora.rank == 0;
      const double linears = has_linears ? static_cast<double>(elements[run].linears) : 0;
      const double gradients = static_cast<double>(elements[run].trained()) * bytes_of(base.gradient_dtype);
      of.all_reduce = data_seconds(WorkKind::grad_reduce, Collective::all_reduce, gradients);
      of.reduce_scatter = data_seconds(WorkKind::grad_reduce, Collective::reduce_scatter, gradients);
      of.gather =
          data_seconds(WorkKind::parameter_gather, Collective::all_gather, gathered_bytes(step, dense, linears));
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::size_t q = s % p;
    const int group = wires.machine_group[q];
    const std::vector<BlockPrice>& price = prices_of(step, group);
    const double overhead = overhead_of(cluster.groups[group].machine);
    const bool has_blocks = !stages[s].empty();  // then at least one segment
    // The embedding alone: no segment follows its message forwards, or comes before it backwards, so the lane goes on.
    const bool ends_with_message =
        stages[s].size() == 1 && base.model->runs[stages[s].front().run].block.kind == BlockKind::embedding;
    double forward = has_blocks ? overhead : 0, backward = forward, weight = 0, kept = 0;
    BlockElements held;
    StageCosts::Lanes &forward_lanes = c.forward_lanes.emplace_back(),
                      &backward_lanes = c.backward_lanes.emplace_back();
    double host_forward = 0, host_backward = 0;
    double tensor_forward = 0, tensor_backward = 0, context_forward = 0, context_backward = 0;
    for (const auto [run, count] : stages[s]) {
      const BlockPrice& one = price[run];
      const int inside = ends_with_message ? 0 : count;
      forward += count * one.forward_s + inside * one.cuts * overhead;
      backward += count * one.backward_s + inside * one.cuts * overhead;
      weight += count * one.weight_s;
      const StageCosts::RunMessages& messages = c.messages[wires.alike[q]][run];
      tensor_forward += inside * messages.tensor_forward;
      tensor_backward += inside * messages.tensor_backward;
      context_forward += inside * messages.context_forward;
      context_backward += inside * messages.context_backward;
      forward_lanes.add(messages.forward_lanes, inside);
      backward_lanes.add(messages.backward_lanes, inside);
      host_forward += count * one.host_forward_s;
      host_backward += count * one.host_backward_s;
      kept += count * kept_bytes(one);
      held += {count * elements[run].dense, count * elements[run].experts, count * elements[run].linears,
               count * elements[run].frozen, count * elements[run].frozen_experts};
    }
    const int last = has_blocks ? stages[s].back().run : 0;
    c.early_s.push_back(has_blocks ? price[last].again_s + c.messages[wires.alike[q]][last].again : 0);
    c.compute_s[q] += forward + backward;
    c.forward_compute_s.push_back(forward);
    c.backward_compute_s.push_back(backward);
    c.tensor_s[q] += tensor_forward + tensor_backward;
    c.context_s[q] += context_forward + context_backward;
    c.forward_s.push_back(forward + tensor_forward + context_forward);
    c.backward_s.push_back(backward + tensor_backward + context_backward);
    c.weight_s.push_back(weight);
    c.host_forward_s.push_back(host_forward);
    c.host_backward_s.push_back(host_backward);
    c.kept_bytes.push_back(kept);
    c.elements.push_back(held);
  }
  costs_key = key;
  return c;
}

}  // namespace slipway::schedules
