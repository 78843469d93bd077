#include "scenarios/commands/export/execution_nodes.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace slipway::scenarios {
namespace {

ExecutionCollective collective_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return ExecutionCollective::all_reduce;
    case Collective::all_gather:
      return ExecutionCollective::all_gather;
    case Collective::reduce_scatter:
      return ExecutionCollective::reduce_scatter;
    case Collective::all_to_all:
      return ExecutionCollective::all_to_all;
    case Collective::broadcast:
      return ExecutionCollective::broadcast;
    default:
      throw std::logic_error("Chakra has no such collective");
  }
}

// A task's nodes: a message round a ring has two.
std::uint64_t first_node(TaskId task) { return 2 * static_cast<std::uint64_t>(task); }
std::uint64_t second_node(TaskId task) { return first_node(task) + 1; }

class RankNodes {
 public:
  RankNodes(const TaskGraph& graph, const Durations& durations, std::int32_t rank,
            const std::function<void(const ExecutionNode&)>& visit)
      : graph_(graph), durations_(durations), rank_(rank), visit_(visit) {}

  void add(TaskId task) {
    ExecutionNode node;
    node.id = first_node(task);
    node.name = label_of(graph_, task);
    node.after = nodes_before(task);
    node.seconds = durations_[task];
    node.notes = {{"kind", kind_of(graph_, task)}};
    const Task& each = graph_.tasks[task];
    if (each.communicator == none)
      add_compute(std::move(node), task);
    else if (graph_.work(task).collective == Collective::shift)
      add_exchange(std::move(node), task);
    else if (each.kind == TaskKind::transfer || goes_one_way(graph_, each))
      add_transfer(std::move(node), task);
    else
      add_collective(std::move(node), task);
    last_of_lane_[each.communicator] = task;
  }

 private:
  std::vector<std::uint64_t> nodes_before(TaskId task) const {
    std::vector<TaskId> tasks;
    for (const TaskId before : graph_.predecessors[task])
      if (has_rank(before)) tasks.push_back(before);
    const auto last = last_of_lane_.find(graph_.tasks[task].communicator);
    if (last != last_of_lane_.end()) tasks.push_back(last->second);
    std::sort(tasks.begin(), tasks.end());
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
    std::vector<std::uint64_t> nodes;
    for (const TaskId before : tasks) {
      nodes.push_back(first_node(before));
      if (is_exchange(before)) nodes.push_back(second_node(before));
    }
    return nodes;
  }

  bool is_exchange(TaskId task) const {
    return graph_.tasks[task].communicator != none && graph_.work(task).collective == Collective::shift;
  }

  bool has_rank(TaskId task) const {
    const auto members = members_of(graph_, task);
    return std::find(members.begin(), members.end(), rank_) != members.end();
  }

  void add_compute(ExecutionNode node, TaskId task) {
    node.flops = flops_of(graph_, task);
    visit_(node);
  }

  void add_message(ExecutionNode node, bool sends, std::int32_t other, TaskId task) {
    node.kind = sends ? ExecutionNodeKind::send : ExecutionNodeKind::receive;
    node.bytes = graph_.work(task).bytes;
    node.source = sends ? rank_ : other, node.destination = sends ? other : rank_;
    node.tag = static_cast<std::int32_t>(task);
    visit_(node);
  }

  void add_transfer(ExecutionNode node, TaskId task) {
    const auto members = members_of(graph_, task);
    const bool sends = members[0] == rank_;
    add_message(std::move(node), sends, sends ? members[1] : members[0], task);
  }

  void add_exchange(ExecutionNode node, TaskId task) {
    const auto members = members_of(graph_, task);
    const auto count = members.size();
    const auto place = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    ExecutionNode receives = node;
    receives.id = second_node(task);
    add_message(std::move(node), true, members[(place + 1) % count], task);
    add_message(std::move(receives), false, members[(place + count - 1) % count], task);
  }

  // Chakra counts what a rank gives; Slipway the whole tensor (models/machine/ring.h).
  void add_collective(ExecutionNode node, TaskId task) {
    const Work& work = graph_.work(task);
    const auto members = static_cast<double>(members_of(graph_, task).size());
    node.kind = ExecutionNodeKind::collective;
    node.collective = collective_of(work.collective);
    node.bytes = work.collective == Collective::all_gather ? work.bytes / members : work.bytes;
    node.group = std::to_string(graph_.tasks[task].communicator);
    visit_(node);
  }

  const TaskGraph& graph_;
  const Durations& durations_;
  std::int32_t rank_;
  const std::function<void(const ExecutionNode&)>& visit_;
  std::unordered_map<std::int32_t, TaskId> last_of_lane_;  // by communicator; none: the compute lane
};

}  // namespace

Rows tasks_of_ranks(const TaskGraph& graph) {
  const auto ranks = static_cast<std::size_t>(rank_count(graph.step.layout));
  Rows rows;
  rows.begin.assign(ranks + 1, 0);
  for (const TaskId task : graph.order)
    for (const std::int32_t rank : members_of(graph, task)) ++rows.begin[static_cast<std::size_t>(rank) + 1];
  for (std::size_t i = 1; i <= ranks; ++i) rows.begin[i] += rows.begin[i - 1];
  rows.values.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (const TaskId task : graph.order)
    for (const std::int32_t rank : members_of(graph, task)) rows.values[next[static_cast<std::size_t>(rank)]++] = task;
  return rows;
}

void each_node(const TaskGraph& graph, const Durations& durations, std::int32_t rank,
               std::span<const std::uint32_t> tasks, const std::function<void(const ExecutionNode&)>& visit) {
  RankNodes nodes(graph, durations, rank, visit);
  for (const TaskId task : tasks) nodes.add(task);
}

}  // namespace slipway::scenarios
