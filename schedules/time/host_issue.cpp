#include "schedules/time/host_issue.h"

#include <algorithm>
#include <numeric>

#include "models/machine/cost.h"
#include "schedules/time/direction.h"

namespace slipway::schedules {

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

HostIssue host_issue_of(const TaskGraph& graph, const PricedCluster& cluster) {
  HostIssue issue;
  const auto launches = [](const NodeGroup& group) { return has_host(group.machine); };
  if (std::none_of(cluster.groups.begin(), cluster.groups.end(), launches)) return issue;
  // Tasks in the order of their ids; their shares are written in the order of the hosts' programs.
  issue.begin.assign(graph.tasks.size() + 1, 0);
  std::vector<bool> lowered;
  for (int rank = 0; rank < rank_count(graph.step.layout); ++rank) lowered.push_back(is_lowered(graph, rank));
  for (const TaskId id : graph.order)
    for (const std::int32_t rank : members_of(graph, id)) issue.begin[id + 1] += lowered[rank] ? 1 : 0;
  std::partial_sum(issue.begin.begin(), issue.begin.end(), issue.begin.begin());
  issue.shares.resize(issue.begin.back());
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
    std::size_t at = issue.begin[id];
    for (const std::int32_t rank : members_of(graph, id)) {
      if (!lowered[rank]) continue;
      double& issued = issue.hosts[rank].tail;
      HostIssue::Share share{rank, since[rank], false, issued, 0};
      if (task.kind == TaskKind::optimizer && since[rank] <= task.step) {
        share.waits = issue.hosts[rank].waits = true;
        ++since[rank];
        issued = 0;
      }
      share.after = issued += seconds_on(rank);
      issue.shares[at++] = share;
    }
  }
  return issue;
}

Hosts::Hosts(const HostIssue& issue, int steps) : issue_(issue) {
  if (issue.empty()) return;
  constexpr double unknown = -1;
  const std::size_t ranks = issue.hosts.size();
  const auto count = static_cast<std::size_t>(steps * issue.synchronisations + 1);
  dates_.assign(count * ranks, unknown);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    dates_[rank] = 0;
    if (issue.hosts[rank].waits) continue;
    for (std::size_t at = 1; at < count; ++at)  // step after step without a stop
      dates_[at * ranks + rank] =
          static_cast<double>(std::max(1, static_cast<int>(at) / issue.synchronisations) - 1) * issue.hosts[rank].tail;
  }
}

std::int32_t Hosts::awaited(std::size_t step, TaskId task) const {
  if (!empty())
    for (const HostIssue::Share& share : issue_.of(task))
      if (dates_[place_of(step, share.rank, share.since)] < 0) return share.rank;
  return none;
}

std::int32_t Hosts::begin(std::size_t step, TaskId task, double date) {
  if (!empty())
    for (const HostIssue::Share& share : issue_.of(task))
      if (share.waits) return dates_[place_of(step, share.rank, share.since + 1)] = date, share.rank;
  return none;
}

}  // namespace slipway::schedules
