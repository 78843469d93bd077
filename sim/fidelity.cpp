#include "sim/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "models/machine/collectives.h"
#include "models/machine/topology.h"
#include "schedules/lower/folding.h"
#include "schedules/time/durations.h"
#include "sim/contention.h"
#include "sim/patterns.h"

namespace slipway::sim {
namespace {

// Trees that NCCL would choose by size load the links that its rings would, for as long as the trees take. So members
// stay alike and the graph may be folded. An explicit tree, or a graph that never folds, has a tree's edges.
bool has_tree_edges(const Planner& planner, const LinkPath& path) { return !path.chooses || planner.shares_links; }

// Seconds before the flows, and bytes of an edge that carries everything.
TaskPlan flows_of(const Planner& planner, TaskId task) {
  const AlgorithmMessage message = message_of(planner, task);
  const LinkPath& path = message.path;
  TaskPlan flows{message.traffic.rounds * message.links.latency, path.weight * message.traffic.bytes_per_link};
  if (message.algorithm == Algorithm::tree && !has_tree_edges(planner, path))
    flows.bytes *= path.bandwidth / path.tree.bandwidth;
  const Communicator& communicator = planner.graph.communicator(task);
  flows.seconds += seconds_before(planner.graph.work(task), communicator, planner.cluster);
  if (path.reduce_bandwidth > 0) flows.seconds += message.traffic.reduced_bytes / path.reduce_bandwidth;
  if (message.algorithm == Algorithm::hierarchical) {  // inside the nodes, before and after
    const double n = path.span.members(), inside = path.span.nodes * (path.span.per_node - 1.0) / (n - 1);
    flows.seconds += inside * message.traffic.bytes_per_link / path.span.inside.bandwidth;
  }
  const EdgeSet& set = planner.sets[planner.set_of_task[task]];
  flows.first_edge = set.first;
  flows.last_edge = set.last;
  return flows;
}

Pattern pattern_of(const Planner& planner, TaskId task) {
  const Task& at = planner.graph.tasks[task];
  if (planner.graph.communicator(at).axis == Axis::pipeline) return Pattern::line;
  if (planner.graph.work(task).collective == Collective::all_to_all) return Pattern::pairs;
  const AlgorithmMessage message = message_of(planner, task);
  switch (message.algorithm) {
    case Algorithm::tree:
      return has_tree_edges(planner, message.path) ? Pattern::trees : Pattern::rails;
    case Algorithm::hierarchical:
      return Pattern::between;
    case Algorithm::multi_ring:
      return Pattern::rails;
    default:
      return Pattern::ring;
  }
}

bool can_flow(const Planner& planner, TaskId task) {
  const Task& at = planner.graph.tasks[task];
  if (at.communicator == none) return false;
  const Work& work = planner.graph.work(task);
  if (!(work.bytes > 0) || is_priced_with_others(planner.graph, work, planner.cluster)) return false;
  if (at.kind == TaskKind::transfer) return true;
  return work.collective == Collective::all_reduce || work.collective == Collective::all_gather ||
         work.collective == Collective::reduce_scatter || work.collective == Collective::all_to_all ||
         work.collective == Collective::shift;
}

EdgeSet add_edges(Planner& planner, std::size_t communicator, Pattern pattern) {
  const auto& ranks = planner.graph.communicators[communicator].ranks;
  const Layout& layout = planner.graph.step.layout;
  const Folding& folding = planner.graph.folding;
  std::vector<Edge>& edges = planner.plan.edges;
  const bool some_weak = !planner.cluster.weak_pairs.empty();
  EdgeSet set{static_cast<std::uint32_t>(edges.size()), 0};
  for (const MemberEdge& edge : edges_of(pattern, ranks.size(), planner.paths[communicator].span)) {
    const std::int32_t from = ranks[edge.from], to = ranks[edge.to];
    if (from == to || stand_in(layout, folding, from) != from) continue;
    const double weak = some_weak ? pair_share(planner.cluster, place_of(planner.cluster, from).node,
                                               place_of(planner.cluster, to).node)
                                  : 1;
    edges.push_back({from, stand_in(layout, folding, to), fabric_between(planner.cluster, from, to), edge.share, weak});
    set.whole = set.whole && edge.share == 1;
  }
  set.last = static_cast<std::uint32_t>(edges.size());
  return set;
}

// The tasks that may become flows, and their edges.
void find_edges(Planner& planner) {
  std::array<std::size_t, pattern_kinds> nothing;
  nothing.fill(no_set);
  planner.set_of.assign(planner.graph.communicators.size(), nothing);
  planner.set_of_task.assign(planner.graph.tasks.size(), static_cast<std::uint32_t>(no_set));
  for (TaskId task = 0; task < planner.graph.tasks.size(); ++task) {
    if (!can_flow(planner, task)) continue;
    const std::int32_t communicator = planner.graph.tasks[task].communicator;
    const Pattern pattern = pattern_of(planner, task);
    std::size_t& set = planner.set_of[communicator][static_cast<std::size_t>(pattern)];
    if (set == no_set) {
      set = planner.sets.size();
      planner.sets.push_back(add_edges(planner, communicator, pattern));
    }
    if (planner.sets[set].first < planner.sets[set].last) planner.set_of_task[task] = static_cast<std::uint32_t>(set);
  }
}

bool becomes_flows(const Planner& planner, TaskId task, CollectiveFidelity fidelity) {
  if (planner.set_of_task[task] == no_set) return false;
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return true;
  if (fidelity != CollectiveFidelity::automatic) return fidelity == CollectiveFidelity::flows;
  const EdgeSet& set = planner.sets[planner.set_of_task[task]];
  return set.contended && is_traffic(set, busyness_of(planner, task));
}

void check(const TaskGraph& graph, const Cluster& cluster, const Durations& durations) {
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

SimulationPlan plan_simulation(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                               CollectiveFidelity fidelity) {
  const PlannedStep alone[] = {{graph, cluster, durations}};
  return std::move(plan_simulations(alone, fidelity).front());
}

std::vector<SimulationPlan> plan_simulations(std::span<const PlannedStep> steps, CollectiveFidelity fidelity) {
  std::vector<Planner> planners;
  for (const PlannedStep& step : steps) {
    check(step.graph, step.cluster, step.durations);
    Planner& planner = planners.emplace_back(Planner{step.graph, step.cluster});
    for (const Communicator& communicator : step.graph.communicators)
      planner.paths.push_back(path_of(step.cluster, communicator));
    find_edges(planner);
  }
  if (fidelity == CollectiveFidelity::automatic) find_contention(planners);
  std::vector<SimulationPlan> plans;
  for (std::size_t i = 0; i < planners.size(); ++i) {
    Planner& planner = planners[i];
    const Durations& durations = steps[i].durations;
    planner.plan.tasks.reserve(durations.size());
    for (TaskId task = 0; task < durations.size(); ++task)
      planner.plan.tasks.push_back(becomes_flows(planner, task, fidelity) ? flows_of(planner, task)
                                                                          : TaskPlan{durations[task]});
    plans.push_back(std::move(planner.plan));
  }
  return plans;
}

}  // namespace slipway::sim
