#include "schedules/time/durations.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "models/training/kfac.h"
#include "schedules/time/direction.h"
#include "schedules/time/overlap.h"

namespace slipway::schedules {
namespace {

// Requires whole blocks: a table has no entries for parts.
double table_seconds(const TaskGraph& graph, const Work& work, const BlockTable& table) {
  if (work.kind != WorkKind::segment) return 0;
  const std::vector<Block> blocks = blocks_of(graph.step.model);
  const auto in_segment = graph.operators_run_by(work);
  double seconds = 0;
  for (int b = in_segment.front().block; b <= in_segment.back().block; ++b) {
    const Block& block = blocks[b];
    if (block.kind != BlockKind::transformer) continue;
    if (const std::string reason = mismatch(table, block, graph.shape()); !reason.empty())
      throw std::invalid_argument(reason);
    const BlockTimes& times = row_of(table, graph.step.micro_batch);
    double input_flops = 0, weight_flops = 0;
    for (const Operator& op : in_segment) {
      if (op.block != b) continue;
      input_flops += op.input_grad_flops;
      weight_flops += op.weight_grad_flops;
    }
    const double input_share = input_flops / (input_flops + weight_flops);  // for a split backward
    seconds += work.pass == Pass::backward      ? times.backward_s
               : work.pass == Pass::input_grad  ? times.backward_s * input_share
               : work.pass == Pass::weight_grad ? times.backward_s * (1 - input_share)
                                                : times.forward_s;
  }
  return seconds;
}

// Seconds of this rank's share: the replicas of a stage, with its copies in the pipeline, divide its Linears.
double precondition_seconds(const TaskGraph& graph, const Work& work, const Machine& machine) {
  const std::vector<Block> blocks = blocks_of(graph.step.model);
  const BlockRange range = graph.stages[work.stage];
  double seconds = 0;
  for (int block = range.first; block < range.last; ++block)
    for (const KfacSeconds& linear : kfac_seconds(blocks[block], graph.shape(), machine))
      seconds += linear.precondition;
  return seconds / (static_cast<double>(graph.step.layout.data) * graph.step.layout.context * graph.placement.copies);
}

// What a step takes once stands beside the update of each rank's first stage.
bool is_first_of_its_rank(const TaskGraph& graph, std::int32_t stage) {
  const Placement& placement = graph.placement;
  for (const int first : placement.by_part())
    if (placement.rank[first] == placement.rank[stage]) return first == stage;
  return false;
}

BlockElements elements_of_stage(const TaskGraph& graph, int stage) {
  const bool one_table = shares_table(graph.step.model, graph.step.layout, graph.placement);
  BlockElements held;
  if (graph.step.narrow == NarrowRecipe::none) return held;
  for (int block = graph.stages[stage].first; block < graph.stages[stage].last; ++block)
    held += elements_of_block(graph.step, block, one_table);
  return held;
}

double seconds_by_the_others(const TaskGraph& graph, const Work& work, const Machine& machine) {
  if (work.kind == WorkKind::precondition) return machine.task_overhead + precondition_seconds(graph, work, machine);
  if (!machine.blocks.empty()) return table_seconds(graph, work, machine.blocks);
  switch (work.kind) {
    case WorkKind::segment:
      return machine.task_overhead + operators_seconds(machine, graph.operators_run_by(work), direction_of(work.pass));
    case WorkKind::optimizer_step:
      return machine.task_overhead + update_seconds(graph.step.optimizer, work.elements, work.dtype, machine) +
             cast_seconds(machine, weight_cast_bytes(graph.step, elements_of_stage(graph, work.stage))) +
             (is_first_of_its_rank(graph, work.stage) ? machine.constants.fixed : 0);
    case WorkKind::worker_norm:
    case WorkKind::grad_norm:
      return machine.task_overhead + norm_seconds(machine, work.elements * bytes_of(work.dtype));
    default:
      break;
  }
  throw std::logic_error("a communication work on a compute lane");
}

// StepConstants::whole of the machines under a message.
double whole_of(const LinkPath& path) { return path.measured == nullptr ? 1 : path.measured->constants.whole; }

}  // namespace

double update_seconds(const Optimizer& optimizer, double elements, Dtype dtype, const Machine& machine) {
  const double on_host = optimizer.offload_fraction * elements;
  return optimizer_seconds(machine, elements - on_host, dtype, optimizer.moment_dtype) +
         host_update_seconds(machine, on_host, dtype, optimizer.moment_dtype);
}

double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine) {
  return machine.constants.whole * seconds_by_the_others(graph, work, machine);
}

double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth) {
  if (work.kind == WorkKind::transfer) return latency + work.bytes / bandwidth;
  return ring_seconds(work.collective, members, work.bytes, latency, bandwidth, reduce_bandwidth);
}

double message_seconds(const Work& work, int members, const LinkPath& path) {
  if (work.kind == WorkKind::transfer || work.kind == WorkKind::host_copy)
    return whole_of(path) * (path.start + path.latency + work.bytes / path.bandwidth);
  const double messages = messages_for(work, path);
  return whole_of(path) * messages * collective_seconds(path, work.collective, members, work.bytes / messages);
}

double seconds_before(const Work& work, const Communicator& communicator, const Cluster& cluster) {
  if (work.collective != Collective::shift || work.elements == 0) return 0;
  double seconds = 0;
  for (const std::int32_t rank : communicator.ranks) {
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    seconds =
        std::max(seconds, machine.constants.whole * adding_seconds(machine, work.elements * bytes_of(work.dtype)) *
                              slowdown_of(cluster, rank));
  }
  return seconds;
}

static_assert(static_cast<std::size_t>(Axis::host) + 1 == message_axes);

namespace {

bool is_of_data_axis(const TaskGraph& graph, TaskId task) {
  const WorkKind kind = graph.work(task).kind;
  return kind == WorkKind::grad_reduce || kind == WorkKind::parameter_gather;
}

// Tokens on their way to experts and back.
bool moves_tokens(const TaskGraph& graph, TaskId task) {
  const Work& work = graph.work(task);
  return work.kind == WorkKind::wire_collective && work.collective == Collective::all_to_all;
}

constexpr auto nowhere = std::numeric_limits<std::uint32_t>::max();

// The place of each compute task in its rank's order.
std::vector<std::uint32_t> places_of(const TaskGraph& graph) {
  std::vector<std::uint32_t> place(graph.tasks.size(), nowhere);
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = graph.compute_order[rank];
    for (std::uint32_t i = 0; i < list.size(); ++i) place[list[i]] = i;
  }
  return place;
}

bool runs_passes(const TaskGraph& graph, TaskId task) { return graph.work(task).kind == WorkKind::segment; }

}  // namespace

Work as_sent(const Layout& layout, const Work& work, const LinkPath& path) {
  if (path.measured == nullptr) return work;
  const TrainerFacts& facts = path.measured->trainer;
  Work sent = work;
  if (work.kind == WorkKind::transfer && facts.cuts_transfers && !layout.sequence_parallel) sent.bytes /= layout.tensor;
  if (work.kind == WorkKind::grad_reduce && facts.all_reduces_gradients) sent.collective = Collective::all_reduce;
  return sent;
}

int messages_for(const Work& work, const LinkPath& path) {
  constexpr int tensors_of_a_layer = 6;  // qkv, output, gate and up, down, two norms
  const bool is_of_data = work.kind == WorkKind::grad_reduce || work.kind == WorkKind::parameter_gather;
  return is_of_data && path.measured != nullptr && path.measured->trainer.reduces_each_tensor ? tensors_of_a_layer : 1;
}

namespace {

// Writes the last task of each member that makes what a message carries. Sums over the tensor group, which some gradients
// pass first, are none, and are of other ranks too.
void find_makers(const TaskGraph& graph, TaskId message, const std::vector<std::uint32_t>& place,
                 std::vector<TaskId>& makers) {
  const auto& members = graph.communicator(message).ranks;
  const auto is_member = [&](TaskId task) {
    return std::find(members.begin(), members.end(), graph.tasks[task].rank) != members.end();
  };
  const auto is_sum = [&](TaskId task) {
    const WorkKind kind = graph.work(task).kind;
    return kind == WorkKind::norm_grad_reduce || kind == WorkKind::kv_grad_reduce;
  };
  makers.clear();
  const auto add = [&](const auto& self, TaskId task) -> void {
    for (const TaskId before : graph.predecessors[task])
      if (place[before] != nowhere && (task == message || is_member(before)))
        makers.push_back(before);
      else if (place[before] == nowhere && is_sum(before))
        self(self, before);
  };
  add(add, message);
  const auto key = [&](TaskId task) { return std::pair(graph.tasks[task].rank, place[task]); };
  std::sort(makers.begin(), makers.end(), [&](TaskId a, TaskId b) { return key(a) > key(b); });
  const auto of_one_rank = [&](TaskId a, TaskId b) { return graph.tasks[a].rank == graph.tasks[b].rank; };
  makers.erase(std::unique(makers.begin(), makers.end(), of_one_rank), makers.end());
}

}  // namespace

// A reduction runs behind the task after the one that made its gradient; a gather behind the task before the one that
// needs its weights. Where that task itself waits for the message, nothing runs. An all-to-all of experts runs behind the
// task after the one that made its tokens, if that is of another micro-batch, as in a pair, or a weight gradient.
std::vector<Beside> messages_beside(const TaskGraph& graph) {
  std::vector<Beside> pairs;
  const std::vector<std::uint32_t> place = places_of(graph);
  std::vector<TaskId> makers;
  for (TaskId message = 0; message < graph.tasks.size(); ++message) {
    if (graph.tasks[message].communicator == none) continue;
    const bool tokens = moves_tokens(graph, message);
    if (!tokens && !is_of_data_axis(graph, message)) continue;
    const auto after = graph.successors[message];
    const auto waits = [&](TaskId task) { return std::find(after.begin(), after.end(), task) != after.end(); };
    bool found = false;
    find_makers(graph, message, place, makers);
    for (const TaskId maker : makers) {
      const auto list = graph.compute_order[graph.tasks[maker].rank];
      if (place[maker] + 1 >= list.size()) continue;
      const TaskId next = list[place[maker] + 1];
      const bool makes = runs_passes(graph, maker) || graph.work(maker).kind == WorkKind::worker_norm;
      const bool counts = !tokens || graph.tasks[next].micro_batch != graph.tasks[maker].micro_batch ||
                          graph.work(next).pass == Pass::weight_grad;
      if (makes && runs_passes(graph, next) && !waits(next) && counts) pairs.push_back({next, message});
      found = found || makes;
    }
    if (tokens) continue;
    for (const TaskId user : after) {
      if (found || place[user] == nowhere || place[user] == 0) continue;
      const TaskId previous = graph.compute_order[graph.tasks[user].rank][place[user] - 1];
      if (runs_passes(graph, previous) && !waits(previous)) pairs.push_back({previous, message});
    }
  }
  return pairs;
}

namespace {

// The messages that run beside a rank's list, one after the other, and what its products lose meanwhile.
class BesideQueue {
 public:
  explicit BesideQueue(std::size_t tasks) : place_(tasks) {}

  bool empty() const { return first_ == begun_.size(); }
  void clear() { begin_anew(begun_.size()); }

  void begin(TaskId message, double seconds) {
    place_[message] = static_cast<std::uint32_t>(begun_.size());
    begun_.push_back(message), seconds_.push_back(seconds);
  }

  // A task waits for a message: it is over, and so are those before it.
  void end_with(TaskId message) {
    const std::size_t at = place_[message];
    if (at >= first_ && at < begun_.size() && begun_[at] == message) begin_anew(at + 1);
  }

  // A product runs for `limit` if messages run beside it all the time; of that, it loses `share`.
  void run(TaskId task, double share, double limit, const std::function<void(const LossBeside&)>& visit) {
    double sum = seconds_[first_] - used_;
    for (std::size_t at = first_ + 1; sum <= limit && at < begun_.size(); ++at) sum += seconds_[at];
    if (sum <= limit) {
      visit({task, share * sum, std::span(begun_).subspan(origin_), products_});
      return clear();
    }
    visit({task, share * limit, {}, {}});
    products_.push_back(task);
    used_ += limit;
    for (; first_ + 1 < begun_.size() && used_ >= seconds_[first_]; ++first_) used_ -= seconds_[first_];
  }

 private:
  // At message `at` of those begun, of which nothing is over.
  void begin_anew(std::size_t at) {
    first_ = origin_ = at;
    used_ = 0;
    products_.clear();
    if (at < begun_.size()) return;
    begun_.clear(), seconds_.clear();
    first_ = origin_ = 0;
  }

  std::vector<TaskId> begun_;
  std::vector<double> seconds_;       // of each
  std::vector<std::uint32_t> place_;  // by task: in begun_, if it is there
  std::size_t first_ = 0;             // that is not over
  double used_ = 0;                   // s of it that are
  std::size_t origin_ = 0;            // the first one since nothing ran; since then:
  std::vector<TaskId> products_;      // that the messages outlasted
};

}  // namespace

void each_loss_beside(const TaskGraph& graph, const Cluster& cluster, const Durations& durations, bool included,
                      const std::function<void(const LossBeside&)>& visit) {
  std::vector<Beside> pairs = messages_beside(graph);
  if (pairs.empty()) return;
  const auto by_task = [](const Beside& a, const Beside& b) { return a.task < b.task; };
  std::stable_sort(pairs.begin(), pairs.end(), by_task);
  BesideQueue queue(graph.tasks.size());
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank, queue.clear()) {
    if (graph.compute_order[rank].empty()) continue;
    const Machine& machine = cluster.groups[place_of(cluster, static_cast<int>(rank)).group].machine;
    const double longer = machine.constants.beside, share = longer / (1 + longer);
    if (!machine.trained || !(longer > 0)) continue;
    for (const TaskId task : graph.compute_order[rank]) {
      if (graph.tasks[task].kind == TaskKind::optimizer) queue.clear();
      if (!runs_passes(graph, task)) continue;
      if (!queue.empty())
        for (const TaskId before : graph.predecessors[task])
          if (graph.tasks[before].communicator != none) queue.end_with(before);
      for (auto at = std::lower_bound(pairs.begin(), pairs.end(), Beside{task, 0}, by_task);
           at != pairs.end() && at->task == task; ++at)
        queue.begin(at->message, durations[at->message]);
      if (queue.empty()) continue;
      const double limit = durations[task] * (included ? 1 : 1 + longer);
      queue.run(task, share, limit, visit);
    }
  }
}

bool has_host(const Machine& machine) {
  return machine.trained && !machine.trainer.cuda_graphs && machine.constants.host_kernel > 0;
}

double host_seconds(WorkKind kind, int members, Axis axis, const Machine& machine) {
  if (!has_host(machine)) return 0;
  const StepConstants& constants = machine.constants;
  const bool drives_members = axis == Axis::tensor && members > 1 && machine.trainer.host_driven_collectives &&
                              kind == WorkKind::wire_collective;
  return constants.whole * (constants.host_kernel + (drives_members ? members * constants.host_member : 0));
}

double host_seconds_of_checkpoint(const Machine& machine) {
  return has_host(machine) ? machine.constants.whole * checkpoint_states * machine.constants.host_kernel : 0;
}

namespace {

bool starts_block(const TaskGraph& graph, const Work& work) {
  const auto operators = graph.operators(work);
  const auto at = static_cast<std::size_t>(work.first_op);
  return at == 0 || operators[at - 1].block != operators[at].block;
}

}  // namespace

double host_seconds(const TaskGraph& graph, const Work& work, int members, Axis axis, const Machine& machine) {
  if (work.kind == WorkKind::wire_collective &&
      graph.operators(work)[static_cast<std::size_t>(work.first_op)].in_graph > 0)
    return 0;
  if (work.kind != WorkKind::segment) return host_seconds(work.kind, members, axis, machine);
  if (!has_host(machine)) return 0;
  double seconds = 0;
  for (const Operator& op : graph.operators_run_by(work)) seconds += host_seconds(machine, op, direction_of(work.pass));
  if (work.pass == Pass::recompute && starts_block(graph, work))
    return machine.constants.whole * seconds + host_seconds_of_checkpoint(machine);
  return machine.constants.whole * seconds;
}

HostIssue host_issue_of(const TaskGraph& graph, const Cluster& cluster) {
  HostIssue issue;
  const auto launches = [](const NodeGroup& group) { return has_host(group.machine); };
  if (std::none_of(cluster.groups.begin(), cluster.groups.end(), launches)) return issue;
  std::vector<std::vector<HostIssue::Share>> shares(graph.tasks.size());
  std::vector<double> known(graph.works.size() * cluster.groups.size(), -1);
  std::vector<int> group_of_rank;
  for (int rank = 0; rank < rank_count(graph.step.layout); ++rank)
    group_of_rank.push_back(place_of(cluster, rank).group);
  issue.hosts.resize(group_of_rank.size());
  issue.synchronisations = graph.window;
  std::vector<std::uint16_t> since(group_of_rank.size(), 0);
  for (const TaskId id : graph.order) {
    const Task& task = graph.tasks[id];
    const auto seconds_on = [&](std::int32_t rank) {
      const auto group = static_cast<std::size_t>(group_of_rank[rank]);
      double& seconds = known[static_cast<std::size_t>(task.work) * cluster.groups.size() + group];
      if (seconds < 0) {
        const bool has_members = task.communicator != none;
        const auto members = has_members ? static_cast<int>(graph.communicator(task).ranks.size()) : 1;
        seconds =
            host_seconds(graph, graph.work(task), members, has_members ? graph.communicator(task).axis : Axis::tensor,
                         cluster.groups[group].machine);
      }
      return seconds;
    };
    for (const std::int32_t rank : members_of(graph, id)) {
      if (!is_lowered(graph, rank)) continue;
      double& issued = issue.hosts[rank].tail;
      HostIssue::Share share{rank, since[rank], false, issued, 0};
      if (task.kind == TaskKind::optimizer && since[rank] <= task.step) {
        share.waits = issue.hosts[rank].waits = true;
        ++since[rank];
        issued = 0;
      }
      share.after = issued += seconds_on(rank);
      shares[id].push_back(share);
    }
  }
  issue.begin.push_back(0);
  for (const auto& each : shares) {
    issue.shares.insert(issue.shares.end(), each.begin(), each.end());
    issue.begin.push_back(static_cast<std::uint32_t>(issue.shares.size()));
  }
  return issue;
}

Durations durations_alone(const TaskGraph& graph, const Cluster& cluster) {
  const int ranks = rank_count(graph.step.layout);
  if (rank_capacity(cluster) < ranks) {
    throw std::invalid_argument("the layout has " + std::to_string(ranks) + " ranks and the cluster " +
                                std::to_string(rank_capacity(cluster)) + " GPUs");
  }
  std::vector<int> group_of_rank;
  std::vector<double> slowdown;
  for (int r = 0; r < ranks; ++r) {
    group_of_rank.push_back(place_of(cluster, r).group);
    slowdown.push_back(slowdown_of(cluster, r));
  }
  std::vector<LinkPath> paths;
  for (const Communicator& communicator : graph.communicators) paths.push_back(path_of(cluster, communicator));

  constexpr double unknown = -1;
  std::vector<double> compute(graph.works.size() * cluster.groups.size(), unknown);
  Durations durations(graph.tasks.size());
  for (std::size_t id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    const Work& work = graph.work(task);
    if (task.communicator != none) {
      const auto c = static_cast<std::size_t>(task.communicator);
      durations[id] = seconds_of_message(graph, work, graph.communicators[c], paths[c], cluster);
      continue;
    }
    const auto group = static_cast<std::size_t>(group_of_rank[task.rank]);
    double& known = compute[static_cast<std::size_t>(task.work) * cluster.groups.size() + group];
    if (known == unknown) known = compute_seconds(graph, work, cluster.groups[group].machine);
    durations[id] = known * slowdown[task.rank];
  }
  return durations;
}

void add_losses_beside(const TaskGraph& graph, const Cluster& cluster, Durations& durations) {
  const auto add = [&](const LossBeside& loss) { durations[loss.task] += loss.seconds; };
  each_loss_beside(graph, cluster, durations, false, add);
}

Durations durations_of(const TaskGraph& graph, const Cluster& cluster) {
  Durations durations = durations_alone(graph, cluster);
  add_losses_beside(graph, cluster, durations);
  return durations;
}

Durations order_and_price(TaskGraph& graph, const Cluster& cluster) {
  Durations durations = durations_of(graph, cluster);
  set_global_order(graph, is_degraded(cluster) ? durations_of(graph, healthy(cluster)) : durations);
  durations.host = host_issue_of(graph, cluster);  // the order is the hosts' program
  return durations;
}

}  // namespace slipway::schedules
