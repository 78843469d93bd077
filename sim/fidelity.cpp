#include "sim/fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_map>

#include "models/collectives.h"
#include "models/topology.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/folding.h"

namespace slipway {
namespace {

constexpr double rounding = 1e-9;

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

struct Planner {
  const TaskGraph& graph;
  const Cluster& cluster;
  SimulationPlan plan;
  std::vector<LinkPath> paths;  // per communicator
  std::vector<bool> contended;  // per communicator

  std::span<const Edge> edges_of(std::size_t communicator) const {
    return {plan.edges.data() + plan.first_edge[communicator],
            plan.edges.data() + plan.first_edge[communicator + 1]};
  }
};

bool is_ring(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

const Work& work_of(const TaskGraph& graph, TaskId task) {
  return graph.works[index(graph.tasks[task].work)];
}

// Seconds before the flows, and bytes per edge.
TaskPlan flows_of(const Planner& planner, TaskId task) {
  const Work& work = work_of(planner.graph, task);
  const std::size_t communicator = index(planner.graph.tasks[task].communicator);
  const LinkPath& path = planner.paths[communicator];
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return {path.latency, path.weight * work.bytes};
  const int members = static_cast<int>(planner.graph.communicators[communicator].ranks.size());
  const RingTraffic traffic = ring_traffic(work.collective, members, work.bytes);
  TaskPlan flows{traffic.rounds * path.latency, path.weight * traffic.bytes_per_link};
  if (path.reduce_bandwidth > 0) flows.seconds += traffic.reduced_bytes / path.reduce_bandwidth;
  return flows;
}

bool moves_data(const Planner& planner, TaskId task) {
  const Task& at = planner.graph.tasks[task];
  if (at.communicator == none || planner.edges_of(index(at.communicator)).empty()) return false;
  const Work& work = work_of(planner.graph, task);
  if (!(work.bytes > 0)) return false;
  return at.kind == TaskKind::transfer || is_ring(work.collective);
}

// Does the task load its ports for longer than it waits for latency?
bool is_traffic(const Planner& planner, TaskId task) {
  if (!moves_data(planner, task)) return false;
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return true;
  const Work& work = work_of(planner.graph, task);
  const std::size_t communicator = index(planner.graph.tasks[task].communicator);
  const int members = static_cast<int>(planner.graph.communicators[communicator].ranks.size());
  const RingTraffic traffic = ring_traffic(work.collective, members, work.bytes);
  const LinkPath& path = planner.paths[communicator];
  return traffic.bytes_per_link / path.bandwidth >= traffic.rounds * path.latency;
}

void add_edges(Planner& planner, const Communicator& communicator) {
  const auto& ranks = communicator.ranks;
  const Layout& layout = planner.graph.layout;
  const Folding& folding = planner.graph.folding;
  const bool line = communicator.axis == Axis::pipeline;  // sender, receiver; everything else is a ring
  const std::size_t count = ranks.size() < 2 ? 0 : line ? ranks.size() - 1 : ranks.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t from = ranks[i], to = ranks[(i + 1) % ranks.size()];
    if (from == to || stand_in(layout, folding, from) != from) continue;
    planner.plan.edges.push_back(
        {from, stand_in(layout, folding, to), fabric_between(planner.cluster, from, to)});
  }
  planner.plan.first_edge.push_back(static_cast<std::uint32_t>(planner.plan.edges.size()));
  planner.paths.push_back(path_of(planner.cluster, communicator));
}

void find_contention(Planner& planner) {
  const std::size_t count = planner.graph.communicators.size();
  std::vector<bool> traffic(count, false);
  for (TaskId task = 0; task < planner.graph.tasks.size(); ++task) {
    const std::int32_t communicator = planner.graph.tasks[task].communicator;
    if (communicator != none && !traffic[index(communicator)] && is_traffic(planner, task))
      traffic[index(communicator)] = true;
  }
  std::unordered_map<std::uint64_t, double> load;  // of each link: bytes/s that its edges would like to send
  Route route;
  const auto visit = [&](std::size_t c, const auto& each) {
    for (const Edge& edge : planner.edges_of(c)) {
      find_route(planner.cluster, edge.fabric, edge.from, edge.to, route);
      const double rate = narrowest(route);
      for (const RouteLink& link : route.links) each(link, rate);
    }
  };
  for (std::size_t c = 0; c < count; ++c)
    if (traffic[c]) visit(c, [&](const RouteLink& link, double rate) { load[link.id] += rate; });
  planner.contended.assign(count, false);
  for (std::size_t c = 0; c < count; ++c)
    if (traffic[c])
      visit(c, [&](const RouteLink& link, double) {
        if (load[link.id] > link.bandwidth * (1 + rounding)) planner.contended[c] = true;
      });
}

bool becomes_flows(const Planner& planner, TaskId task, CollectiveFidelity fidelity) {
  if (!moves_data(planner, task)) return false;
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return true;
  if (fidelity != CollectiveFidelity::automatic) return fidelity == CollectiveFidelity::flows;
  return planner.contended[index(planner.graph.tasks[task].communicator)] && is_traffic(planner, task);
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
  check(graph, cluster, durations);
  Planner planner{graph, cluster, {}, {}, {}};
  planner.plan.first_edge.push_back(0);
  for (const Communicator& communicator : graph.communicators) add_edges(planner, communicator);
  if (fidelity == CollectiveFidelity::automatic) find_contention(planner);
  planner.plan.tasks.reserve(graph.tasks.size());
  for (TaskId task = 0; task < graph.tasks.size(); ++task)
    planner.plan.tasks.push_back(becomes_flows(planner, task, fidelity) ? flows_of(planner, task)
                                                                        : TaskPlan{durations[task], 0});
  return std::move(planner.plan);
}

}  // namespace slipway
