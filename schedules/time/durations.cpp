#include "schedules/time/durations.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "models/training/kfac.h"

namespace slipway::schedules {
namespace {

Direction direction_of(Pass pass) {
  switch (pass) {
    case Pass::backward:
      return Direction::backward;
    case Pass::input_grad:
      return Direction::input_grad;
    case Pass::weight_grad:
      return Direction::weight_grad;
    default:
      return Direction::forward;
  }
}

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

}  // namespace

double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine) {
  if (work.kind == WorkKind::precondition) return machine.task_overhead + precondition_seconds(graph, work, machine);
  if (!machine.blocks.empty()) return table_seconds(graph, work, machine.blocks);
  switch (work.kind) {
    case WorkKind::segment:
      return machine.task_overhead + operators_seconds(machine, graph.operators_run_by(work), direction_of(work.pass));
    case WorkKind::optimizer_step:
      return machine.task_overhead + optimizer_seconds(machine, work.elements, work.dtype);
    case WorkKind::worker_norm:
    case WorkKind::grad_norm:
      return machine.task_overhead + norm_seconds(machine, work.elements * bytes_of(work.dtype));
    default:
      break;
  }
  throw std::logic_error("a communication work on a compute lane");
}

double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth) {
  if (work.kind == WorkKind::transfer) return latency + work.bytes / bandwidth;
  return ring_seconds(work.collective, members, work.bytes, latency, bandwidth, reduce_bandwidth);
}

double message_seconds(const Work& work, int members, const LinkPath& path) {
  if (work.kind == WorkKind::transfer) return path.latency + work.bytes / path.bandwidth;
  return collective_seconds(path, work.collective, members, work.bytes);
}

double seconds_before(const Work& work, const Communicator& communicator, const Cluster& cluster) {
  if (work.collective != Collective::shift || work.elements == 0) return 0;
  if (cluster.message_costs[static_cast<std::size_t>(communicator.axis)].bandwidth > 0) return 0;
  double seconds = 0;
  for (const std::int32_t rank : communicator.ranks) {
    const Machine& machine = cluster.groups[place_of(cluster, rank).group].machine;
    seconds =
        std::max(seconds, adding_seconds(machine, work.elements * bytes_of(work.dtype)) * slowdown_of(cluster, rank));
  }
  return seconds;
}

bool is_priced_with_others(const TaskGraph& graph, const Work& work, const Cluster& cluster) {
  return cluster.message_costs[static_cast<std::size_t>(Axis::tensor)].bandwidth > 0 && gathers_again(graph, work);
}

static_assert(static_cast<std::size_t>(Axis::world) + 1 == message_axes);

Durations durations_of(const TaskGraph& graph, const Cluster& cluster) {
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
      if (is_priced_with_others(graph, work, cluster)) continue;
      const auto c = static_cast<std::size_t>(task.communicator);
      durations[id] = message_seconds(work, static_cast<int>(graph.communicators[c].ranks.size()), paths[c]) +
                      seconds_before(work, graph.communicators[c], cluster);
      continue;
    }
    const auto group = static_cast<std::size_t>(group_of_rank[task.rank]);
    double& known = compute[static_cast<std::size_t>(task.work) * cluster.groups.size() + group];
    if (known == unknown) known = compute_seconds(graph, work, cluster.groups[group].machine);
    durations[id] = known * slowdown[task.rank];
  }
  return durations;
}

Durations order_and_price(TaskGraph& graph, const Cluster& cluster) {
  Durations durations = durations_of(graph, cluster);
  set_global_order(graph, is_degraded(cluster) ? durations_of(graph, healthy(cluster)) : durations);
  return durations;
}

}  // namespace slipway::schedules
