#include "sim/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "models/collectives.h"
#include "models/topology.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/folding.h"
#include "sim/patterns.h"

namespace slipway {
namespace {

constexpr double rounding = 1e-9;

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

constexpr std::size_t no_set = 0xFFFFFFFF;

// Edges that flows of one pattern use in one communicator.
struct EdgeSet {
  std::uint32_t first = 0, last = 0;
  bool whole = true;  // each edge carries all that a ring's link would
  double busiest = 0;   // the largest time on links of any task, over its latency
  double overload = 1;  // what would be sent over one of its links, over what the link can carry
  bool carries_traffic = false, contended = false;
};

// Of a task's latency: the time on links that may be left out of its contention.
constexpr double negligible = 0.01;

bool has_shared_links(const Cluster& cluster) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return !is_star(cluster, fabric); });
}

struct Planner {
  const TaskGraph& graph;
  const Cluster& cluster;
  bool shares_links = has_shared_links(cluster);
  SimulationPlan plan{};
  std::vector<LinkPath> paths{};  // per communicator
  std::vector<std::array<std::size_t, pattern_kinds>>
      set_of{};  // [communicator][pattern]; no_set: none yet
  std::vector<EdgeSet> sets{};
  std::vector<std::uint32_t> set_of_task{};

  std::span<const Edge> edges_of(const EdgeSet& set) const {
    return {plan.edges.data() + set.first, plan.edges.data() + set.last};
  }
};

const Work& work_of(const TaskGraph& graph, TaskId task) {
  return graph.works[index(graph.tasks[task].work)];
}

// A message as its algorithm sends it.
struct Message {
  const LinkPath& path;
  Algorithm algorithm;
  Links links;
  RingTraffic traffic;
};

Message message_of(const Planner& planner, TaskId task) {
  const Work& work = work_of(planner.graph, task);
  const std::size_t communicator = index(planner.graph.tasks[task].communicator);
  const LinkPath& path = planner.paths[communicator];
  if (planner.graph.tasks[task].kind == TaskKind::transfer)
    return {path, Algorithm::ring, {path.latency, path.bandwidth}, {work.bytes, 1, 0}};
  const int members = static_cast<int>(planner.graph.communicators[communicator].ranks.size());
  const Algorithm algorithm = algorithm_of(path, work.collective, members, work.bytes);
  return {path, algorithm, links_of(path, work.collective, algorithm),
          ring_traffic(work.collective, members, work.bytes)};
}

// Trees that NCCL would choose by size load the links that its rings would, for as long as the trees take:
// members stay alike, so that the graph may be folded. What is told to be a tree, or never folds, has a
// tree's edges.
bool has_tree_edges(const Planner& planner, const LinkPath& path) { return !path.chooses || planner.shares_links; }

// Seconds before the flows, and bytes per edge that carries all of it.
TaskPlan flows_of(const Planner& planner, TaskId task) {
  const Message message = message_of(planner, task);
  const LinkPath& path = message.path;
  TaskPlan flows{message.traffic.rounds * message.links.latency,
                 path.weight * message.traffic.bytes_per_link};
  if (message.algorithm == Algorithm::tree && !has_tree_edges(planner, path))
    flows.bytes *= path.bandwidth / path.tree.bandwidth;
  const Communicator& communicator = planner.graph.communicators[index(planner.graph.tasks[task].communicator)];
  flows.seconds += seconds_before(work_of(planner.graph, task), communicator, planner.cluster);
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
  if (planner.graph.communicators[index(at.communicator)].axis == Axis::pipeline) return Pattern::line;
  if (work_of(planner.graph, task).collective == Collective::all_to_all) return Pattern::pairs;
  const Message message = message_of(planner, task);
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
  const Work& work = work_of(planner.graph, task);
  if (!(work.bytes > 0)) return false;
  if (at.kind == TaskKind::transfer) return true;
  return work.collective == Collective::all_reduce || work.collective == Collective::all_gather ||
         work.collective == Collective::reduce_scatter || work.collective == Collective::all_to_all ||
         work.collective == Collective::shift;
}

EdgeSet add_edges(Planner& planner, std::size_t communicator, Pattern pattern) {
  const auto& ranks = planner.graph.communicators[communicator].ranks;
  const Layout& layout = planner.graph.layout;
  const Folding& folding = planner.graph.folding;
  std::vector<Edge>& edges = planner.plan.edges;
  const bool some_weak = !planner.cluster.weak_pairs.empty();
  EdgeSet set{static_cast<std::uint32_t>(edges.size()), 0};
  for (const MemberEdge& edge : edges_of(pattern, ranks.size(), planner.paths[communicator].span)) {
    const std::int32_t from = ranks[edge.from], to = ranks[edge.to];
    if (from == to || stand_in(layout, folding, from) != from) continue;
    const double weak =
        some_weak
            ? pair_share(planner.cluster, place_of(planner.cluster, from).node, place_of(planner.cluster, to).node)
            : 1;
    edges.push_back(
        {from, stand_in(layout, folding, to), fabric_between(planner.cluster, from, to), edge.share, weak});
    set.whole = set.whole && edge.share == 1;
  }
  set.last = static_cast<std::uint32_t>(edges.size());
  return set;
}

// Seconds that the task loads its links if it is alone, over those that it waits for latency.
double busyness_of(const Planner& planner, TaskId task) {
  constexpr double always = std::numeric_limits<double>::infinity();
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return always;
  const Message message = message_of(planner, task);
  const double waits = message.traffic.rounds * message.links.latency;
  return waits > 0 ? message.traffic.bytes_per_link / message.links.bandwidth / waits : always;
}

// Which task may become flows on which edges.
void find_edges(Planner& planner) {
  std::array<std::size_t, pattern_kinds> nothing;
  nothing.fill(no_set);
  planner.set_of.assign(planner.graph.communicators.size(), nothing);
  planner.set_of_task.assign(planner.graph.tasks.size(), static_cast<std::uint32_t>(no_set));
  for (TaskId task = 0; task < planner.graph.tasks.size(); ++task) {
    if (!can_flow(planner, task)) continue;
    const std::size_t communicator = index(planner.graph.tasks[task].communicator);
    const Pattern pattern = pattern_of(planner, task);
    std::size_t& set = planner.set_of[communicator][static_cast<std::size_t>(pattern)];
    if (set == no_set) {
      set = planner.sets.size();
      planner.sets.push_back(add_edges(planner, communicator, pattern));
    }
    if (planner.sets[set].first < planner.sets[set].last)
      planner.set_of_task[task] = static_cast<std::uint32_t>(set);
  }
}

// How fast the edges of a set would go per share of a whole one where they meet on ports only, as their
// closed form says: all at once, none waiting.
double pace_of(const Planner& planner, const EdgeSet& set) {
  std::map<std::array<int, 4>, double>
      busy;  // seconds per byte of a whole edge: fabric, node, port, direction
  const auto add = [&](const Edge& edge, std::int32_t rank, int direction, double seconds) {
    const Place place = place_of(planner.cluster, rank);
    const int shared = std::max(1, planner.cluster.fabrics[index(edge.fabric)].gpus_per_port);
    return busy[{edge.fabric, place.node, place.gpu / shared, direction}] += seconds;
  };
  Route route;
  double longest = 0;
  for (const Edge& edge : planner.edges_of(set)) {
    find_route(planner.cluster, edge.fabric, edge.from, edge.to, route);
    const double seconds = edge.share / narrowest(route);
    longest = std::max({longest, add(edge, edge.from, 0, seconds), add(edge, edge.to, 1, seconds)});
  }
  return 1 / longest;
}

using Loads = std::unordered_map<std::uint64_t, double>;  // of links: bytes/s that edges would like to send

template <typename Each>
void visit_links(const Planner& planner, const EdgeSet& set, Each each) {
  Route route;
  const double pace = set.whole ? 0 : pace_of(planner, set);
  for (const Edge& edge : planner.edges_of(set)) {
    find_route(planner.cluster, edge.fabric, edge.from, edge.to, route);
    const double rate = edge.share == 1 ? narrowest(route) : edge.share * pace;
    for (const RouteLink& link : route.links) each(link, rate);
  }
}

bool is_traffic(const EdgeSet& set, double busyness) { return busyness * set.overload >= negligible; }

void find_busiest(Planner& planner) {
  for (TaskId task = 0; task < planner.graph.tasks.size(); ++task)
    if (planner.set_of_task[task] != no_set)
      if (EdgeSet& set = planner.sets[planner.set_of_task[task]]; !std::isinf(set.busiest))
        set.busiest = std::max(set.busiest, busyness_of(planner, task));
}

template <typename Wanted>
void add_loads(const Planner& planner, Loads& loads, Wanted wanted) {
  for (const EdgeSet& set : planner.sets)
    if (wanted(set))
      visit_links(planner, set, [&](const RouteLink& link, double rate) { loads[link.id] += rate; });
}

// Against the loads of all that might send.
void find_traffic(Planner& planner, const Loads& loads) {
  for (EdgeSet& set : planner.sets) {
    visit_links(planner, set, [&](const RouteLink& link, double) {
      set.overload = std::max(set.overload, loads.at(link.id) / (link.bandwidth * (1 - link.down)));
    });
    set.carries_traffic = is_traffic(set, set.busiest);
  }
}

// Against the loads of what does.
void find_contention(Planner& planner, const Loads& loads) {
  for (EdgeSet& set : planner.sets)
    if (set.carries_traffic)
      visit_links(planner, set, [&](const RouteLink& link, double) {
        if (link.down > 0 || loads.at(link.id) > link.bandwidth * (1 + rounding)) set.contended = true;
      });
}

void find_contention(std::vector<Planner>& planners) {
  Loads all, traffic;
  for (Planner& planner : planners) {
    find_busiest(planner);
    add_loads(planner, all, [](const EdgeSet&) { return true; });
  }
  for (Planner& planner : planners) {
    find_traffic(planner, all);
    add_loads(planner, traffic, [](const EdgeSet& set) { return set.carries_traffic; });
  }
  for (Planner& planner : planners) find_contention(planner, traffic);
}

bool becomes_flows(const Planner& planner, TaskId task, CollectiveFidelity fidelity) {
  if (planner.set_of_task[task] == no_set) return false;
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return true;
  if (fidelity != CollectiveFidelity::automatic) return fidelity == CollectiveFidelity::flows;
  const EdgeSet& set = planner.sets[planner.set_of_task[task]];
  return set.contended && is_traffic(set, busyness_of(planner, task));
}

void check(const TaskGraph& graph, const Cluster& cluster, const Durations& durations) {
  const int ranks = rank_count(graph.layout), capacity = rank_capacity(cluster);
  if (capacity < ranks)
    throw std::invalid_argument(
        fmt::format("the layout has {} ranks but cluster {} has {} GPUs; add nodes or make "
                    "the layout smaller",
                    ranks, cluster.name, capacity));
  if (durations.size() != graph.tasks.size())
    throw std::invalid_argument(
        fmt::format("{} durations for {} tasks", durations.size(), graph.tasks.size()));
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

}  // namespace slipway
