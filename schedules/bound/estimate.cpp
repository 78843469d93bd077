#include "schedules/bound/estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "schedules/bound/estimate_parts.h"

namespace slipway::schedules {

void RingSum::add(Collective collective, int members, double bytes) {
  const RingTraffic traffic = ring_traffic(collective, members, bytes);
  rounds += traffic.rounds;
  link_bytes += traffic.bytes_per_link;
  reduced_bytes += traffic.reduced_bytes;
}

BlockPrice block_price(const Model& model, int block, const WorkShape& shape, Recompute recompute,
                       const Machine& machine) {
  const std::vector<Operator> operators = operators_of(model, block, block + 1, shape);
  const bool again = recompute == Recompute::full && blocks_of(model)[block].kind == BlockKind::transformer;
  BlockPrice price;
  for (const Operator& op : operators) {
    if (op.kind != OpKind::communicate) {
      const double forward = operator_seconds(machine, op, Direction::forward);
      price.forward_s += forward;
      price.backward_s += operator_seconds(machine, op, Direction::backward) + (again ? forward : 0);
      price.weight_s += operator_seconds(machine, op, Direction::weight_grad);
      // A trainer's estimate counts what the embedding keeps in its own way.
      if (op.kind != OpKind::embed && op.kind != OpKind::add_positions) price.kept_bytes += op.saved_bytes;
      continue;
    }
    ++price.cuts;
    if (op.forward == Collective::shift) continue;  // runs beside the attention, and may be hidden by it
    const bool context = op.axis == Axis::context;
    const int members = context ? shape.sharding.context : shape.sharding.tensor;
    RingSum& forward = context ? price.context_forward : price.tensor_forward;
    RingSum& backward = context ? price.context_backward : price.tensor_backward;
    forward.add(op.forward, members, op.message_bytes);
    if (again) backward.add(op.forward, members, op.message_bytes);
    backward.add(op.backward, members, op.message_bytes);
  }
  if (!again) return price;
  price.again_s = price.forward_s;
  price.tensor_again = price.tensor_forward;
  price.context_again = price.context_forward;
  price.kept_bytes = boundary_bytes(model, shape);  // the block's input
  return price;
}

namespace {

LinkPath ring_path(const Cluster& cluster, Axis axis, int first, int stride, int count) {
  if (count < 2) return {};
  Communicator ring{"", axis, {}};
  for (int i = 0; i < count; ++i) ring.ranks.push_back(first + i * stride);
  return path_of(cluster, ring);
}

}  // namespace

namespace {

// The member of a pipeline rank whose machines, over all pipeline ranks, have the lowest peaks; the first of several.
int slowest_member(const Cluster& cluster, const Layout& layout) {
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

Wiring wiring_of(const Cluster& cluster, const Layout& layout) {
  Wiring wiring;
  const int p = layout.pipeline, t = layout.tensor, c = layout.context, members = layout.data * c * t;
  const int member = slowest_member(cluster, layout);
  for (int q = 0; q < p; ++q) {
    const int first = q * members, rank = first + member;
    wiring.machine_group.push_back(place_of(cluster, rank).group);
    wiring.tensor.push_back(ring_path(cluster, Axis::tensor, rank - member % t, 1, t));
    wiring.context.push_back(ring_path(cluster, Axis::context, rank - member / t % c * t, t, c));
    wiring.data.push_back(ring_path(cluster, Axis::data, first + member % t, t, layout.data * c));
    if (p == 1) continue;
    const int next = (q + 1) % p * members, previous = (q + p - 1) % p * members;
    wiring.to_next.push_back(ring_path(cluster, Axis::pipeline, rank, next - first, 2));
    wiring.to_previous.push_back(ring_path(cluster, Axis::pipeline, rank, previous - first, 2));
  }
  if (p > 1) wiring.embedding = ring_path(cluster, Axis::embedding, member, (p - 1) * members, 2);
  return wiring;
}

LinkPath world_path(const Cluster& cluster, int ranks) { return ring_path(cluster, Axis::world, 0, 1, ranks); }

namespace {

using Parts = StepEstimator::Parts;
double send_seconds(const LinkPath& path, double bytes) { return path.latency + bytes / path.bandwidth; }

StepTerms pace_of(const StageCosts& costs, int q, int micro_batches, const StepEndSeconds& end) {
  const double m = micro_batches;
  return {m * costs.compute_s[q], m * costs.tensor_s[q], m * costs.context_s[q], 0, end.data, end.optimizer};
}

double sum_of(const StepTerms& t) { return t.compute + t.tensor + t.context + t.pipeline + t.data + t.optimizer; }

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

// A schedule that is not plain: the compute of a rank's forwards with their backwards. (An input gradient and its
// weight gradient take at least as long as the whole backward; a later slice at least as long as the first.)
void bound_compute(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  if (!all_on_one_machine(parts.wiring(step.layout))) return;
  const StageCosts& costs = parts.costs_of(step);
  const ScheduleUse& use = parts.use_of(step, m);
  const bool split = is_split(parts, step, m);
  std::vector<double> busy(step.layout.pipeline, 0);
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    busy[use.placement.rank[stage]] += use.forwards[stage] * costs.passes_s[use.placement.part_of(stage)];
  for (int q = 0; q < step.layout.pipeline; ++q) {
    StepTerms terms{busy[q], 0, 0, 0, 0, 0};
    if (split) {  // collectives within layers, of both groups
      (step.layout.tensor > 1 ? terms.tensor : terms.context) = split_busy_seconds(parts, step, m, q) - busy[q];
      terms.optimizer = split_end(parts, step, costs, use, q, false).optimizer;
    }
    keep_larger(estimate, terms);
  }
}

// (4) of estimate.h.
void bound_shared_gpus(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const Cluster& cluster = parts.cluster;
  const bool all_wait = step.layout.tensor == 1 || joins_all_ranks(parts.base);
  if (cluster.ranks_per_gpu == 1 || cluster.groups.size() > 1 || !all_wait) return;
  const StageCosts& costs = parts.costs_of(step);
  const int ranks = rank_count(step.layout), members = ranks / step.layout.pipeline;
  std::map<std::pair<int, int>, double> busy;  // by node and GPU
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place = place_of(cluster, rank);
    keep_larger(estimate, {busy[{place.node, place.gpu}] += m * costs.compute_s[rank / members], 0, 0, 0, 0, 0});
  }
}

// (1) to (4) of estimate.h.
void bound_time(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(step);
  const Wiring& wires = parts.wiring(step.layout);
  if (!parts.use_of(step, m).is_plain) return bound_compute(parts, step, m, estimate);
  bound_shared_gpus(parts, step, m, estimate);
  double fill = 0;  // other stages before and after rank q, sends included
  StepEndSeconds first_end;
  for (int q = 0; q < step.layout.pipeline; ++q) {
    const StepEndSeconds end = step_end(parts, step, costs, q);
    if (q == 0) first_end = end;
    keep_larger(estimate, pace_of(costs, q, m, end));
    StepTerms through = pace_of(costs, q, m, first_end);
    through.pipeline = fill;
    keep_larger(estimate, through);
    const double lane = data_lane_seconds(parts, step, q);
    if (lane > estimate.bound_s) {
      StepTerms busy = pace_of(costs, q, m, end);
      busy.data = lane - (sum_of(busy) - busy.data);
      keep_larger(estimate, busy);
    }
    if (q + 1 == step.layout.pipeline) break;
    fill += costs.forward_s[q] + costs.backward_s[q] - costs.early_s[q] +
            send_seconds(wires.to_next[q], costs.send_bytes) + send_seconds(wires.to_previous[q + 1], costs.send_bytes);
  }
}

void bound_memory(Parts& parts, const Step& step, int m, StepEstimate& estimate) {
  const StageCosts& costs = parts.costs_of(step);
  const Wiring& wires = parts.wiring(step.layout);
  const ScheduleUse& use = parts.use_of(step, m);
  const int p = step.layout.pipeline;
  estimate.memory_share = -1;
  for (int q = 0; q < p; ++q) {
    double elements = 0, kept = 0;
    for (int stage = 0; stage < use.placement.stages(); ++stage) {
      if (use.placement.rank[stage] != q) continue;
      const std::size_t part = use.placement.part_of(stage);
      elements += costs.elements[part];
      if (use.is_plain) kept += use.in_flight[q][stage / p] * costs.kept_bytes[part];
    }
    const StaticBytes fixed =
        static_bytes_of(elements, step.layout, step.dtype, parts.base.gradient_dtype, use.placement.copies);
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

StepEstimator::StepEstimator(Step base, const Cluster& cluster, const MemoryConstants& trainer, const Stack* stack)
    : parts_(std::make_unique<Parts>(std::move(base), cluster)) {
  if (trainer.facts.gradient_bytes > 0)
    parts_->least_gradients = std::min(1.0, trainer.facts.gradient_bytes / bytes_of(parts_->base.gradient_dtype));
  parts_->least_kept = std::min({1.0, trainer.layer_factor, trainer.norm_copy_bytes / 8, trainer.score_bytes / 5,
                                 trainer.fused_score_bytes / 5, trainer.logit_bytes / 4, trainer.plain_logit_bytes / 4,
                                 trainer.fused_logit_bytes / 4});
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

StepEstimate StepEstimator::estimate(const Step& step) {
  if (parts_->stack != nullptr) {
    const Cluster paced = parts_->paced_for(step);
    return at_one_pace(paced).estimate(step);
  }
  const int m = micro_batches_of(step);
  StepEstimate estimate;
  bound_time(*parts_, step, m, estimate);
  scale(estimate, parts_->fastest_gpu);
  bound_memory(*parts_, step, m, estimate);
  return estimate;
}

double StepEstimator::passes_bound(const Step& step) {
  if (parts_->stack != nullptr) {
    const Cluster paced = parts_->paced_for(step);
    return at_one_pace(paced).passes_bound(step);
  }
  const double bound = estimate(step).bound_s;
  const int m = micro_batches_of(step);
  const ScheduleUse& use = parts_->use_of(step, m);
  if (!use.is_plain && (!is_split(*parts_, step, m) || !all_on_one_machine(parts_->wiring(step.layout)))) return bound;
  const ActionLists lists = schedule_of(step).actions(schedule_shape(step));
  const StageCosts& costs = parts_->costs_of(step);
  const Action& last = lists.front().back();
  const bool ends_with_weights = last.pass == Pass::weight_grad && last.stage == 0;
  const StepEndSeconds end =
      use.is_plain ? step_end(*parts_, step, costs, 0) : split_end(*parts_, step, costs, use, 0, ends_with_weights);
  return std::max(bound, parts_->fastest_gpu * (passes_seconds(*parts_, step, m, lists) + end.data + end.optimizer));
}

StepEstimate estimate_step(const Step& step, const Cluster& cluster) {
  if (step.actions != nullptr) throw std::invalid_argument("a schedule of a CSV has no closed form; name a schedule");
  return StepEstimator(step, cluster).estimate(step);
}

// The longest path from rank 0's first forward to the end of its list. It is a list replay of the actions, in which a
// message to another rank takes its time and one to the rank itself none. Guarded by
// tests/schedules/estimate_test.cpp and tests/scenarios/search_test.cpp.

namespace {

class Replay {
 public:
  Replay(const StageCosts& costs, const Wiring& wires, const ScheduleUse& use, int micro_batches)
      : costs_(costs),
        wires_(wires),
        use_(use),
        micro_batches_(micro_batches),
        forward_at_(use.placement.stages() * micro_batches, unknown),
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
          arrival(use_.placement.rank[action.stage], use_.placement.rank[to], forward, now);
  }

  // A plain schedule has one message lane per sender and direction, in the sender's order. Others are assumed to have
  // no lanes. A send between ranks that are no neighbours, whose links are not known, takes no time.
  double arrival(int from, int to, bool forward, double now) {
    const int p = static_cast<int>(wires_.to_next.size());
    if (from == to || p == 0) return now;
    const bool next = to == (from + 1) % p, previous = from == (to + 1) % p;
    if (!next && !previous) return now;
    const LinkPath& path = (next ? wires_.to_next : wires_.to_previous)[from];
    double& lane = (forward ? forward_lane_ : backward_lane_)[from];
    return lane = (use_.is_plain ? std::max(lane, now) : now) + (path.latency + costs_.send_bytes / path.bandwidth);
  }

  const StageCosts& costs_;
  const Wiring& wires_;
  const ScheduleUse& use_;
  int micro_batches_;
  std::vector<double> forward_at_, backward_at_, forward_lane_, backward_lane_;
};

}  // namespace

double passes_seconds(StepEstimator::Parts& parts, const Step& step, int micro_batches, const ActionLists& lists) {
  return Replay(parts.costs_of(step), parts.wiring(step.layout), parts.use_of(step, micro_batches), micro_batches)
      .run(lists);
}

// What follows a stage's last backward, and the data group's lane: the third line of estimate.h's picture.

namespace {

using Parts = StepEstimator::Parts;
int data_degree(const Layout& layout) { return layout.data * layout.context; }

// Reduction of the gradients, or gather of the parameters, of one block with `elements` in a tensor shard.
double reduce_seconds(const Parts& parts, const Layout& layout, const LinkPath& path, double elements) {
  return collective_seconds(path, layout.zero >= 1 ? Collective::reduce_scatter : Collective::all_reduce,
                            data_degree(layout), elements * bytes_of(parts.base.gradient_dtype));
}
double gather_seconds(const Parts& parts, const Layout& layout, const LinkPath& path, double elements) {
  return collective_seconds(path, Collective::all_gather, data_degree(layout), elements * bytes_of(parts.base.dtype));
}

double tied_seconds(Parts& parts, const Step& step) {
  const Layout& layout = step.layout;
  if (!parts.tied || layout.pipeline == 1) return 0;
  const Block& head = parts.base.model->runs.back().block;
  const double elements = static_cast<double>(head.vocab) / layout.tensor * static_cast<double>(head.hidden);
  const LinkPath& path = parts.wiring(layout).embedding;
  return collective_seconds(path, Collective::all_reduce, 2, elements * bytes_of(parts.base.gradient_dtype));
}

// Seconds of one block in a whole backward of stage q, or in a weight gradient.
double block_seconds(const BlockPrice& price, Pass pass, const Wiring& wires, int q, double overhead) {
  if (pass == Pass::weight_grad) return price.weight_s + (price.cuts + 1) * overhead;
  return price.backward_s + price.cuts * overhead + seconds_over(wires.tensor[q], price.tensor_backward) +
         seconds_over(wires.context[q], price.context_backward);
}

// Largest of  Σ(j≤i) red(j) − Σ(j<i) B(j)  over the blocks i of stage q. Within a run of equal blocks it is linear in
// i, so the ends of the runs are enough. Segments of a weight gradient hold only blocks with such gradients.
double exposed_reduction(Parts& parts, const Step& step, int q, Pass last_pass) {
  const Layout& layout = step.layout;
  const bool whole = last_pass == Pass::backward;
  const double tied = whole && q == 0 ? tied_seconds(parts, step) : 0;
  if (data_degree(layout) == 1) return tied;
  const Wiring& wires = parts.wiring(layout);
  const std::vector<BlockPrice>& prices = parts.prices_of(step, wires.machine_group[q]);
  const std::vector<double>& elements = parts.elements_of_runs(step);
  const double overhead = parts.cluster.groups[wires.machine_group[q]].machine.task_overhead;
  double lane = 0, before = 0, most = 0;  // `before`: the pass of the blocks before, as StageCosts counts it
  for (const auto [run, count] : parts.split_of(layout)[q]) {
    const BlockPrice& price = prices[run];
    if (!whole && price.weight_s <= 0) continue;
    const double reduce = reduce_seconds(parts, layout, wires.data[q], elements[run]);
    const double block = block_seconds(price, last_pass, wires, q, overhead);
    if (lane == 0) {
      most = tied + reduce;
      before = whole ? overhead : 0;
    }
    most = std::max({most, lane + reduce - before, lane + count * reduce - before - (count - 1) * block});
    lane += count * reduce;
    before += count * block;
  }
  return most;
}

// Parameters that the first segment of the next step's first forward of stage q waits for.
double first_gather(Parts& parts, const Step& step, int q) {
  const Layout& layout = step.layout;
  if (layout.zero < 1 || data_degree(layout) == 1) return 0;
  const LinkPath& path = parts.wiring(layout).data[q];
  const std::vector<double>& elements = parts.elements_of_runs(step);
  const auto& runs = parts.split_of(layout)[q];
  const bool cut = layout.tensor > 1 || layout.context > 1 || layout.zero >= 2 || step.recompute == Recompute::full ||
                   micro_batches_of(step) == 1;
  double seconds = 0;
  for (const auto [run, count] : runs) {
    const double one = gather_seconds(parts, layout, path, elements[run]);
    if (cut) return one;
    seconds += count * one;
  }
  return seconds;
}

}  // namespace

StepEndSeconds split_end(Parts& parts, const Step& step, const StageCosts& costs, const ScheduleUse& use, int q,
                         bool reduces) {
  const Layout& layout = step.layout;
  const Machine& machine = parts.cluster.groups[parts.wiring(layout).machine_group[q]].machine;
  const double shards = layout.zero >= 1 ? data_degree(layout) : 1;
  StepEndSeconds end;
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[stage] == q)
      end.optimizer += machine.task_overhead + optimizer_seconds(machine, costs.elements[stage] / shards, step.dtype);
  if (reduces) end.data = exposed_reduction(parts, step, q, Pass::weight_grad);
  return end;
}

StepEndSeconds step_end(Parts& parts, const Step& step, const StageCosts& costs, int q) {
  const Layout& layout = step.layout;
  const Machine& machine = parts.cluster.groups[parts.wiring(layout).machine_group[q]].machine;
  const double shards = layout.zero >= 1 ? data_degree(layout) : 1;
  double first = 0, later = 0, held = 0;  // the optimizer of stage q, and of the rank's other stages
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const double elements = costs.elements[chunk * layout.pipeline + q] / shards;
    (chunk == 0 ? first : later) += machine.task_overhead + optimizer_seconds(machine, elements, step.dtype);
    held += elements;
  }
  StepEndSeconds end{exposed_reduction(parts, step, q, Pass::backward), first};
  const double gather = first_gather(parts, step, q);
  end.optimizer += later;
  end.data += std::max(0.0, gather - later);
  if (joins_all_ranks(parts.base)) {
    const int ranks = rank_count(layout);
    end.optimizer += machine.task_overhead + norm_seconds(machine, held * bytes_of(parts.base.gradient_dtype));
    if (ranks > 1) {
      const LinkPath& world = parts.world_links(ranks);
      end.optimizer += collective_seconds(world, Collective::all_reduce, ranks, 8);
    }
  }
  return end;
}

double data_lane_seconds(Parts& parts, const Step& step, int q) {
  const Layout& layout = step.layout;
  if (layout.zero < 2 || data_degree(layout) == 1) return 0;
  const LinkPath& path = parts.wiring(layout).data[q];
  const std::vector<double>& elements = parts.elements_of_runs(step);
  const auto& stages = parts.split_of(layout);
  double lane = 0, largest = 0;
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    for (const auto [run, count] : stages[chunk * layout.pipeline + q]) {
      const double gather = layout.zero >= 3 ? gather_seconds(parts, layout, path, elements[run]) : 0;
      lane += count * (reduce_seconds(parts, layout, path, elements[run]) + 2 * gather);
      largest = std::max(largest, gather);
    }
  }
  // Two gathers may be fetched before the step's first task; the next step's first one is inside.
  return lane * micro_batches_of(step) - 2 * largest;
}

// Lower bounds for schedules whose backward is cut in two, or whose stages are not s mod p (zb-*, dualpipe-v):
//
//   busy     a rank's lane runs its forwards, input gradients and weight gradients one after the other; the collectives
//            of a layer are a chain with its segments, and a weight gradient has none
//   passes   the longest path from rank 0's first task to the end of its list, after which rank 0 updates its stages
// They require one kind of machine and the same links in the groups of all ranks; else only the compute is bounded.
// Guarded by tests/schedules/estimate_test.cpp and tests/scenarios/search_test.cpp.

namespace {

using Parts = StepEstimator::Parts;
bool are_alike(const LinkPath& a, const LinkPath& b) {
  return a.latency == b.latency && a.bandwidth == b.bandwidth && a.reduce_bandwidth == b.reduce_bandwidth &&
         a.tree.latency == b.tree.latency && a.tree.bandwidth == b.tree.bandwidth;
}

bool are_alike(const std::vector<LinkPath>& paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const LinkPath& path) { return are_alike(path, paths.front()); });
}

}  // namespace

bool is_split(Parts& parts, const Step& step, int micro_batches) {
  const Wiring& wires = parts.wiring(step.layout);
  const ScheduleUse& use = parts.use_of(step, micro_batches);
  return !use.is_plain && use.placement.copies == 1 && parts.base.slices == 1 && use.placement.rank.front() == 0 &&
         are_alike(wires.tensor) && are_alike(wires.context);
}

double split_busy_seconds(Parts& parts, const Step& step, int micro_batches, int q) {
  const StageCosts& costs = parts.costs_of(step);
  const ScheduleUse& use = parts.use_of(step, micro_batches);
  double busy = 0;
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[stage] == q)
      busy += use.forwards[stage] * (costs.forward_s[stage] + costs.backward_s[stage]);
  return busy;
}

}  // namespace slipway::schedules
