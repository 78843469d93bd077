#include "sim/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <tuple>

#include "models/machine/collectives.h"
#include "models/machine/priced_cluster.h"
#include "models/machine/topology.h"
#include "schedules/lower/representatives.h"
#include "schedules/time/durations.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"
#include "schedules/time/overlap.h"
#include "sim/contention.h"
#include "sim/patterns.h"

namespace slipway::sim {
namespace {

// Seconds before the flows, and bytes of an edge that carries everything. `duration`: the task's price.
TaskForm flows_of(const LinkUse& use, TaskId task, double duration) {
  const AlgorithmMessage message = message_of(use, task);
  const LinkPath& path = message.path;
  const Work& work = use.graph.work(task);
  const Communicator& communicator = use.graph.communicator(task);
  const double before = seconds_before(work, communicator, use.cluster);
  TaskForm flows;
  if (path.measured != nullptr) {
    const MeasuredFlows alone = measured_flows(use, message);
    const double price = message_seconds(as_sent(use.graph.step.layout, work, path), message.members, path);
    flows = {std::max(0.0, price - alone.seconds) + before, alone.bytes, alone.seconds};
  } else {
    flows = {message.traffic.rounds * message.links.latency + before, path.weight * message.traffic.bytes_per_link};
    if (message.algorithm == Algorithm::tree && !has_tree_edges(use, path))
      flows.bytes *= path.bandwidth / path.tree.bandwidth;
    if (path.reduce_bandwidth > 0) flows.seconds += message.traffic.reduced_bytes / path.reduce_bandwidth;
    flows.seconds += seconds_inside(message);
  }
  if (product_beside(use.graph, work).product != nullptr) {  // the part that nothing hides
    const double whole = message_seconds(as_sent(use.graph.step.layout, work, path), message.members, path);
    const double share = duration / whole;
    flows.seconds *= share, flows.bytes *= share, flows.least_s *= share;
  }
  const EdgeSet& set = use.sets[use.set_of_task[task]];
  flows.first_edge = set.first;
  flows.last_edge = set.last;
  return flows;
}

Pattern pattern_of(const LinkUse& use, TaskId task) {
  const Task& at = use.graph.tasks[task];
  if (use.graph.communicator(at).axis == Axis::pipeline) return Pattern::line;
  if (use.graph.work(task).collective == Collective::all_to_all) return Pattern::pairs;
  const AlgorithmMessage message = message_of(use, task);
  switch (message.algorithm) {
    case Algorithm::tree:
      return has_tree_edges(use, message.path) ? Pattern::trees : Pattern::rails;
    case Algorithm::hierarchical:
      return Pattern::between;
    case Algorithm::multi_ring:
      return Pattern::rails;
    case Algorithm::gloo:
      return Pattern::pairs;
    default:
      return Pattern::ring;
  }
}

bool can_flow(const LinkUse& use, TaskId task) {
  const Task& at = use.graph.tasks[task];
  if (at.communicator == none) return false;
  const Work& work = use.graph.work(task);
  if (!(work.bytes > 0)) return false;
  if (at.kind == TaskKind::transfer) return true;
  return work.collective == Collective::all_reduce || work.collective == Collective::all_gather ||
         work.collective == Collective::reduce_scatter || work.collective == Collective::all_to_all ||
         work.collective == Collective::shift;
}

EdgeSet add_edges(LinkUse& use, std::size_t communicator, Pattern pattern) {
  const auto& ranks = use.graph.communicators[communicator].ranks;
  const Layout& layout = use.graph.step.layout;
  const Representatives& representatives = use.graph.representatives;
  std::vector<Edge>& edges = use.forms.edges;
  const bool some_weak = !use.cluster.weak_pairs.empty();
  EdgeSet set{static_cast<std::uint32_t>(edges.size()), 0};
  std::map<std::tuple<int, int, int, double, double>, std::size_t> known;
  for (const MemberEdge& edge : edges_of(pattern, ranks.size(), use.paths[communicator].span)) {
    const std::int32_t from = ranks[edge.from], to = ranks[edge.to];
    if (from == to || representative_of(layout, representatives, from) != from) continue;
    const double weak =
        some_weak ? pair_share(use.cluster, place_of(use.cluster, from).node, place_of(use.cluster, to).node) : 1;
    const int fabric = fabric_between(use.cluster, from, to);
    double share = edge.share;
    if (pattern == Pattern::pairs) {
      const RouteBytes& routes = use.paths[communicator].routes;
      share *= use.cluster.fabrics[fabric].scope == Fabric::Scope::cluster ? routes.between : routes.inside;
    }
    const Edge added{from, representative_of(layout, representatives, to), fabric, share, weak, 1};
    const auto [equal, is_new] =
        known.try_emplace({added.from, added.to, added.fabric, added.share, added.weak}, edges.size());
    if (is_new || weak < 1)  // each flow of a weak pair has its own largest rate
      edges.push_back(added);
    else
      ++edges[equal->second].flows;
    set.whole = set.whole && share == 1;
  }
  set.last = static_cast<std::uint32_t>(edges.size());
  return set;
}

// The tasks that may become flows, and their edges.
void find_edges(LinkUse& use) {
  std::array<std::size_t, pattern_kinds> nothing;
  nothing.fill(no_set);
  use.set_of.assign(use.graph.communicators.size(), nothing);
  use.set_of_task.assign(use.graph.tasks.size(), static_cast<std::uint32_t>(no_set));
  use.alike = alike_tasks(use.graph);
  for (TaskId task = 0; task < use.graph.tasks.size(); ++task) {
    if (use.alike[task] != task) {
      use.set_of_task[task] = use.set_of_task[use.alike[task]];
      continue;
    }
    if (!can_flow(use, task)) continue;
    const std::int32_t communicator = use.graph.tasks[task].communicator;
    const Pattern pattern = pattern_of(use, task);
    std::size_t& set = use.set_of[communicator][static_cast<std::size_t>(pattern)];
    if (set == no_set) {
      set = use.sets.size();
      use.sets.push_back(add_edges(use, communicator, pattern));
    }
    if (use.sets[set].first < use.sets[set].last) use.set_of_task[task] = static_cast<std::uint32_t>(set);
  }
}

bool becomes_flows(const LinkUse& use, TaskId task, CollectiveFidelity fidelity) {
  if (use.set_of_task[task] == no_set) return false;
  if (use.graph.tasks[task].kind == TaskKind::transfer) return true;
  if (fidelity != CollectiveFidelity::automatic) return fidelity == CollectiveFidelity::flows;
  const EdgeSet& set = use.sets[use.set_of_task[task]];
  return set.contended && is_traffic(set, busyness_of(use, task));
}

void check(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations) {
  const int ranks = rank_count(graph.step.layout), capacity = rank_capacity(cluster);
  if (capacity < ranks)
    throw std::invalid_argument(
        fmt::format("the layout has {} ranks but cluster {} has {} GPUs; add nodes or make "
                    "the layout smaller",
                    ranks, cluster.name, capacity));
  if (durations.size() != graph.tasks.size())
    throw std::invalid_argument(fmt::format("{} durations for {} tasks", durations.size(), graph.tasks.size()));
  for (TaskId task = 0; task < durations.size(); ++task)
    if (!(durations[task] >= 0) || !std::isfinite(durations[task]))
      throw std::invalid_argument(
          fmt::format("task {} has the impossible duration {} s", label_of(graph, task), durations[task]));
}

}  // namespace

TaskForms task_forms(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                     CollectiveFidelity fidelity) {
  const TimedStep alone[] = {{graph, cluster, durations}};
  return std::move(task_forms(alone, fidelity).front());
}

std::vector<TaskForms> task_forms(std::span<const TimedStep> steps, CollectiveFidelity fidelity) {
  std::vector<LinkUse> uses;
  for (const TimedStep& step : steps) {
    check(step.graph, step.cluster, step.durations);
    LinkUse& use = uses.emplace_back(LinkUse{step.graph, step.cluster});
    for (const Communicator& communicator : step.graph.communicators)
      use.paths.push_back(path_of(step.cluster, communicator));
    find_edges(use);
  }
  if (fidelity == CollectiveFidelity::automatic) find_contention(uses);
  std::vector<TaskForms> all_forms;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    LinkUse& use = uses[i];
    const Durations& durations = steps[i].durations;
    use.forms.tasks.reserve(durations.size());
    use.forms.host = &durations.host;
    std::vector<bool> flows(durations.size());
    for (TaskId task = 0; task < durations.size(); ++task) {
      const TaskId twin = use.alike[task];
      flows[task] = twin == task ? becomes_flows(use, task, fidelity) : flows[twin];
      if (!flows[task])
        use.forms.tasks.push_back({durations[task]});
      else if (twin != task && durations[task] == durations[twin])
        use.forms.tasks.push_back(TaskForm(use.forms.tasks[twin]));
      else
        use.forms.tasks.push_back(flows_of(use, task, durations[task]));
    }
    all_forms.push_back(std::move(use.forms));
  }
  return all_forms;
}

}  // namespace slipway::sim
