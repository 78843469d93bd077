#include "schedules/bound/estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "models/machine/cost.h"
#include "schedules/bound/estimate_parts.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/message_price.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {

void LayerMessages::add(Collective collective, int members, double bytes) {
  if (collective == Collective::none || members < 2) return;
  for (Alike& each : list)
    if (each.collective == collective && each.members == members && each.bytes == bytes) {
      ++each.count;
      return;
    }
  list.push_back({collective, members, bytes, 1});
}

double seconds_over(const LinkPath& path, const LayerMessages& messages) {
  double seconds = 0;
  for (const LayerMessages::Alike& each : messages.list)
    seconds += each.count *
               message_seconds(message(WorkKind::wire_collective, each.collective, each.bytes), each.members, path);
  return seconds;
}

Work message(WorkKind kind, Collective collective, double bytes) {
  Work work;
  work.kind = kind, work.collective = collective, work.bytes = bytes;
  return work;
}

double sent_seconds(const Layout& layout, const Work& work, int members, const LinkPath& path) {
  return message_seconds(as_sent(layout, work, path), members, path);
}

namespace {

// Messages of a communicate operator in both passes of one micro-batch, those of recomputation and of the gather for
// the weight gradient included.
int messages_of(const Operator& op, bool again) {
  const int forward = op.forward == Collective::none ? 0 : 1;
  return (again ? 2 : 1) * forward + (op.backward == Collective::none ? 0 : op.backward_messages) +
         (gathers_input(op) && !again ? 1 : 0);
}

}  // namespace

namespace {

// The products of the experts that every token goes through, where others are on separate ranks.
bool is_shared_experts(const Operator& op) {
  return op.kind != OpKind::share && op.kind != OpKind::combine && op.kind != OpKind::communicate &&
         (op.reads & wire_shared) != 0;
}

// True for the first message of the shared experts: the one of what they read.
bool before_shared(std::span<const Operator> operators, const Operator& message) {
  return std::none_of(operators.data(), &message, is_shared_experts);
}

void add_token_message(const Operator& op, int members, bool is_gather, bool at_experts, BlockPrice& price) {
  const auto add = [&](LayerMessages TokenMessages::*list) {
    (price.tokens_forward.*list).add(op.forward, members, op.message_bytes * op.forward_sent);
    (price.tokens_backward.*list).add(op.backward, members, op.message_bytes * op.backward_sent);
  };
  if (op.axis == Axis::expert) return add(at_experts ? &TokenMessages::back : &TokenMessages::out);
  if (op.axis == Axis::expert_tensor) return add(at_experts ? &TokenMessages::back_cut : &TokenMessages::out_cut);
  if (is_gather) add(&TokenMessages::gather);
}

}  // namespace

BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine, bool hides_tensor) {
  const std::vector<Operator> operators = operators_of(model, block, block + 1, shape);
  const Block here = blocks_of(model)[block];
  const bool again = is_recomputed(recompute, here);
  const double whole = machine.constants.whole;
  BlockPrice price;
  if (again) price.host_backward_s = host_seconds_of_checkpoint(machine);
  const Operator* before = nullptr;
  bool at_experts = false;  // behind the first product of the experts
  for (const Operator& op : operators) {
    if (op.kind != OpKind::communicate) {
      before = &op;
      at_experts = at_experts || runs_experts(op);
      const double forward = whole * operator_seconds(machine, op, Direction::forward);
      price.forward_s += forward;
      price.backward_s += whole * operator_seconds(machine, op, Direction::backward) + (again ? forward : 0);
      price.weight_s += whole * operator_seconds(machine, op, Direction::weight_grad);
      if (is_shared_experts(op)) {
        price.tokens_forward.shared_s += forward;
        price.tokens_backward.shared_s += whole * operator_seconds(machine, op, Direction::backward);
      }
      if (has_host(machine)) {
        const double launches = whole * host_seconds(machine, op, Direction::forward);
        price.host_forward_s += launches;
        price.host_backward_s += whole * host_seconds(machine, op, Direction::backward) + (again ? launches : 0);
      }
      // A trainer's estimate counts what the embedding keeps in its own way.
      if (op.kind != OpKind::embed && op.kind != OpKind::add_positions) {
        price.kept_bytes += op.saved_bytes;
        price.optional += optional_kept(op, here);
      }
      continue;
    }
    if (before != nullptr && before->kind != OpKind::communicate) ++price.cuts;
    before = &op;
    const bool context = op.axis == Axis::context;
    const int members = op.axis == Axis::expert          ? shape.sharding.expert
                        : op.axis == Axis::expert_tensor ? expert_tensor_of(shape.sharding)
                        : context                        ? shape.sharding.context
                        : op.axis == Axis::data          ? balanced_replicas(shape.routing, shape.micro_batch)
                                                         : shape.sharding.tensor;
    const double launch = op.in_graph > 0 ? 0 : host_seconds(WorkKind::wire_collective, members, op.axis, machine);
    const int first = op.forward == Collective::none ? 0 : 1;
    price.host_forward_s += first * launch;
    price.host_backward_s += (messages_of(op, again) - first) * launch;
    if (op.wire == wire_statistics) continue;       // a few numbers, which may be sent beside the experts' products
    if (op.forward == Collective::shift) continue;  // runs beside the attention, and may be hidden by it
    if (op.axis == Axis::expert || op.axis == Axis::expert_tensor || op.wire == wire_shared) {
      const bool is_gather = op.axis == Axis::tensor && before_shared(operators, op) && !hides_tensor;
      add_token_message(op, members, is_gather, at_experts, price);
      continue;
    }
    if (hides_tensor && !context && (op.forward == Collective::all_gather || op.forward == Collective::reduce_scatter))
      continue;
    LayerMessages& forward = context ? price.context_forward : price.tensor_forward;
    LayerMessages& backward = context ? price.context_backward : price.tensor_backward;
    forward.add(op.forward, members, op.message_bytes * op.forward_sent);
    if (again) backward.add(op.forward, members, op.message_bytes * op.forward_sent);
    backward.add(op.backward, members, op.message_bytes * op.backward_sent);
  }
  if (!again) return price;
  price.again_s = price.forward_s;
  price.tensor_again = price.tensor_forward;
  price.context_again = price.context_forward;
  price.kept_bytes = boundary_bytes(model, shape);  // the block's input
  price.optional = {};
  return price;
}

namespace {

LinkPath ring_path(const PricedCluster& cluster, Axis axis, int first, int stride, int count,
                   const TokenTraffic& tokens = {}) {
  if (count < 2) return {};
  Communicator ring{"", axis, {}, tokens};
  for (int i = 0; i < count; ++i) ring.ranks.push_back(first + i * stride);
  return path_of(cluster, ring);
}

}  // namespace

namespace {

// The member of a pipeline rank whose machines, over all pipeline ranks, have the lowest peaks; the first of several.
int slowest_member(const PricedCluster& cluster, const Layout& layout) {
  const int members = layout.data * layout.context * layout.tensor;
  std::vector<double> seconds_per_flop;
  for (const NodeGroup& group : cluster.groups) {
    const auto& peaks = group.machine.peak_flops;
    seconds_per_flop.push_back(1 / *std::max_element(peaks.begin(), peaks.end()));
  }
  int slowest = 0;
  double most = 0;
  for (int member = 0; member < members && cluster.groups.size() > 1; ++member) {
    double sum = 0;
    for (int q = 0; q < layout.pipeline; ++q) sum += seconds_per_flop[place_of(cluster, q * members + member).group];
    if (sum > most * (1 + 1e-12)) most = sum, slowest = member;
  }
  return slowest;
}

}  // namespace

Wiring wiring_of(const PricedCluster& cluster, const Layout& layout, const TokenTraffic& tokens) {
  Wiring wiring;
  const int p = layout.pipeline, t = layout.tensor, c = layout.context, members = layout.data * c * t;
  const bool dispatched = dispatches(sharding_of(layout));
  const int e = layout.expert, cut = dispatched ? expert_tensor_of(sharding_of(layout)) : 1;
  const int member = slowest_member(cluster, layout);
  for (int q = 0; q < p; ++q) {
    const int first = q * members, rank = first + member;
    wiring.machine_group.push_back(place_of(cluster, rank).group);
    wiring.tensor.push_back(ring_path(cluster, Axis::tensor, rank - member % t, 1, t));
    wiring.context.push_back(ring_path(cluster, Axis::context, rank - member / t % c * t, t, c));
    wiring.data.push_back(ring_path(cluster, Axis::data, first + member % t, t, shards_of(layout)));
    wiring.expert.push_back(ring_path(cluster, Axis::expert, rank - member / cut % e * cut, cut, e, tokens));
    wiring.expert_tensor.push_back(ring_path(cluster, Axis::expert_tensor, rank - member % cut, 1, cut));
    int like = 0;
    while (wiring.machine_group[like] != wiring.machine_group[q] || wiring.tensor[like] != wiring.tensor[q] ||
           wiring.context[like] != wiring.context[q] || wiring.data[like] != wiring.data[q] ||
           wiring.expert[like] != wiring.expert[q] || wiring.expert_tensor[like] != wiring.expert_tensor[q])
      ++like;
    wiring.alike.push_back(like);
    if (p == 1) continue;
    const int next = (q + 1) % p * members, previous = (q + p - 1) % p * members;
    wiring.to_next.push_back(ring_path(cluster, Axis::pipeline, rank, next - first, 2));
    wiring.to_previous.push_back(ring_path(cluster, Axis::pipeline, rank, previous - first, 2));
  }
  if (p > 1) wiring.embedding = ring_path(cluster, Axis::embedding, member, (p - 1) * members, 2);
  return wiring;
}

LinkPath world_path(const PricedCluster& cluster, int ranks) { return ring_path(cluster, Axis::world, 0, 1, ranks); }

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

bool all_on_one_machine(const Wiring& wires) {
  return std::all_of(wires.machine_group.begin(), wires.machine_group.end(),
                     [&](int group) { return group == wires.machine_group.front(); });
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

// Seconds of the optimizers of a pipeline rank: of its first stage, with what a step takes once, and of its others; and
// the parameters of its shard.
struct Update {
  double first = 0, later = 0, held = 0;
};
// Parameters that one rank updates.
double shard_of(const BlockElements& held, const Layout& layout) {
  const auto dense = static_cast<double>(held.trained()), experts = static_cast<double>(held.trained_experts());
  return layout.zero == 0 ? dense + experts : dense / shards_of(layout) + experts / expert_data_of(layout);
}
// Seconds of the optimizer of one stage, with its casts of weights.
double stage_update_seconds(const Step& step, const StageCosts& costs, int stage, const Machine& machine) {
  const BlockElements& held = costs.elements[stage];
  return overhead_of(machine) +
         machine.constants.whole * (update_seconds(step.optimizer, shard_of(held, step.layout), step.dtype, machine) +
                                    cast_seconds(machine, weight_cast_bytes(step, held)));
}
double once_a_step(const Machine& machine) { return machine.constants.whole * machine.constants.fixed; }

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

// By how much the optimizer of another rank may start before that of rank 0: both wait for the same norm.
double ahead_of_first(const Machine& machine) {
  constexpr int launches_behind_the_norm = 2;
  return has_host(machine) ? launches_behind_the_norm * host_seconds(WorkKind::transfer, 2, Axis::pipeline, machine)
                           : 0;
}

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

// The first forward of each stage waits for its blocks' gathered weights (ZeRO 1 and 2 beside the forward pass), which
// come one after the other from a rank's optimizer on:
//
//   rank q  optimizer │ later optimizers │ F block 0 │ F block 1 │ ...      S(q) at the end of the optimizers and of
//   gathers           │ g 0 │ g 1 │ g 2 │ ...                               the first gather
bool gathers_beside(const Step& step) {
  const Layout& l = step.layout;
  return l.zero >= 1 && l.zero <= 2 && data_degree(l) > 1 && step.overlap_param_gather;
}

const Machine& machine_of(StepEstimator::Parts& parts, const Layout& layout, int q) {
  return parts.cluster.groups[parts.wiring(layout).machine_group[q]].machine;
}

// Seconds from the start of rank q's optimizer to S(q), at least.
double seconds_to_first(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Update update = update_of(step, costs, q, machine_of(parts, step.layout, q));
  return update.first + std::max(update.later, first_gather(parts, step, costs, q));
}

// The earliest end of the first forward of a stage, where the rank's optimizer starts at 0. `gathered`: when the weights
// before it are there; then, when its own are. Within a run of equal blocks it is linear, so the ends of runs are enough.
double gathered_forward(StepEstimator::Parts& parts, const Step& step, const StageCosts& costs, int stage,
                        double& gathered) {
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

// By how much longer the first forward of rank q takes than another, behind its gathers.
double gathered_late(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  if (!gathers_beside(step)) return 0;
  double gathered = update_of(step, costs, q, machine_of(parts, step.layout, q)).first;
  const double end = gathered_forward(parts, step, costs, q, gathered);
  return std::max(0.0, end - seconds_to_first(parts, step, costs, q) - costs.forward_s[q]);
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
  const double longer = machine_of(parts, l, q).constants.beside;
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

// The longest path from rank 0's first forward to the end of its list. It is a list replay of the actions, in which a
// message to another rank takes its time and one to the rank itself none. An action starts and ends no earlier than its
// host, which began at the norm, has issued it. All that follows the norm is in `end`, which is therefore at least the
// hosts' lead; with more lead than there was, the walk is only shorter. Guarded by tests/schedules/estimate_test.cpp and
// tests/scenarios/search_test.cpp.

namespace {

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
      const Machine& machine = machine_of(parts, step.layout, q);
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

double passes_seconds(StepEstimator::Parts& parts, const Step& step, int micro_batches, const ActionLists& lists,
                      double lead) {
  return Replay(parts, step, micro_batches, lead).run(lists);
}

// The work after a stage's last backward, and the data group's lane: the third line of estimate.h's picture.

namespace {

using Parts = StepEstimator::Parts;

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

double own_norm_seconds(const Parts& parts, const Machine& machine, double elements) {
  return overhead_of(machine) +
         machine.constants.whole * norm_seconds(machine, elements * bytes_of(parts.base.gradient_dtype));
}

StepEndSeconds split_end(Parts& parts, const Step& step, const StageCosts& costs, const ScheduleUse& use, int q,
                         bool reduces) {
  const Machine& machine = machine_of(parts, step.layout, q);
  StepEndSeconds end;
  end.optimizer = once_a_step(machine);
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[stage] == q) end.optimizer += stage_update_seconds(step, costs, stage, machine);
  if (reduces) end.data = exposed_reduction(parts, step, costs, q, Pass::weight_grad);
  return end;
}

StepEndSeconds step_end(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Layout& layout = step.layout;
  const Machine& machine = parts.cluster.groups[parts.wiring(layout).machine_group[q]].machine;
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

// Lower bounds for schedules whose backward is cut in two, whose stages are not s mod p (zb-*, dualpipe-v), or which run
// a forward and a backward as a pair:
//
//   busy     a rank's lane runs its actions one after the other. The collectives of an action are a chain with its
//            segments; a weight gradient has none. A pair takes as long as either chain, as the compute of both, and as
//            both's collectives on any lane:
//
//              lane    │ F.attn │ B.mlp │ wait │ F.mlp │ B.attn │        ≥ out + back of F, and of B, on one lane
//              experts          │  F out │ B back │  ...
//
//            With delayed weight gradients a backward is such a pair too, of its input and its weight gradients.
//   passes   the longest path from rank 0's first task to the end of its list, after which rank 0 updates its stages
// They require one kind of machine and the same links in the groups of all ranks; else only the compute is bounded.
// Guarded by tests/schedules/estimate_test.cpp and tests/scenarios/search_test.cpp.

namespace {

using Parts = StepEstimator::Parts;
bool are_alike(const std::vector<LinkPath>& paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const LinkPath& path) { return path == paths.front(); });
}

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

}  // namespace slipway::schedules
