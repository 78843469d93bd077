#include "sim/contention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

namespace slipway::sim {
namespace {

constexpr double rounding = 1e-9;

// Share of a task's latency: a shorter time on links may be left out of its contention.
constexpr double negligible = 0.01;

// How fast the edges of a set would go per share of a whole one where they meet on ports only. As in their closed form,
// all go at once and none waits.
double pace_of(const Planner& planner, const EdgeSet& set) {
  std::map<std::array<int, 4>, double> busy;  // seconds per byte of a whole edge: fabric, node, port, direction
  const auto add = [&](const Edge& edge, std::int32_t rank, int direction, double seconds) {
    const Place place = place_of(planner.cluster, rank);
    const int shared = std::max(1, planner.cluster.fabrics[edge.fabric].gpus_per_port);
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

using Loads = std::unordered_map<std::uint64_t, double>;  // bytes/s that edges would send, by link

template <typename Each>
void visit_links(const Planner& planner, const EdgeSet& set, Each each) {
  Route route;
  for (const Edge& edge : planner.edges_of(set)) {
    find_route(planner.cluster, edge.fabric, edge.from, edge.to, route);
    for (const RouteLink& link : route.links) each(link, edge, route);
  }
}

void find_busiest(Planner& planner) {
  for (TaskId task = 0; task < planner.graph.tasks.size(); ++task)
    if (planner.set_of_task[task] != no_set)
      if (EdgeSet& set = planner.sets[planner.set_of_task[task]]; !std::isinf(set.busiest))
        set.busiest = std::max(set.busiest, busyness_of(planner, task));
}

template <typename Wanted>
void add_loads(const Planner& planner, Loads& loads, Wanted wanted) {
  for (const EdgeSet& set : planner.sets) {
    if (!wanted(set)) continue;
    const double pace = set.whole ? 0 : pace_of(planner, set);
    visit_links(planner, set, [&](const RouteLink& link, const Edge& edge, const Route& route) {
      loads[link.id] += edge.share == 1 ? narrowest(route) : edge.share * pace;
    });
  }
}

// Compares with the loads of everything that might send.
void find_traffic(Planner& planner, const Loads& loads) {
  for (EdgeSet& set : planner.sets) {
    visit_links(planner, set, [&](const RouteLink& link, const Edge&, const Route&) {
      set.overload = std::max(set.overload, loads.at(link.id) / (link.bandwidth * (1 - link.down)));
    });
    set.carries_traffic = is_traffic(set, set.busiest);
  }
}

// Compares with the loads of real traffic.
void find_contention(Planner& planner, const Loads& loads) {
  for (EdgeSet& set : planner.sets)
    if (set.carries_traffic)
      visit_links(planner, set, [&](const RouteLink& link, const Edge&, const Route&) {
        if (link.down > 0 || loads.at(link.id) > link.bandwidth * (1 + rounding)) set.contended = true;
      });
}

}  // namespace

bool has_shared_links(const Cluster& cluster) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return !is_star(cluster, fabric); });
}

AlgorithmMessage message_of(const Planner& planner, TaskId task) {
  const Work& work = planner.graph.work(task);
  const std::size_t communicator = static_cast<std::size_t>(planner.graph.tasks[task].communicator);
  const LinkPath& path = planner.paths[communicator];
  if (planner.graph.tasks[task].kind == TaskKind::transfer)
    return {path, Algorithm::ring, {path.latency, path.bandwidth}, {work.bytes, 1, 0}};
  const int members = static_cast<int>(planner.graph.communicators[communicator].ranks.size());
  const Algorithm algorithm = algorithm_of(path, work.collective, members, work.bytes);
  return {path, algorithm, links_of(path, work.collective, algorithm),
          ring_traffic(work.collective, members, work.bytes)};
}

double busyness_of(const Planner& planner, TaskId task) {
  constexpr double always = std::numeric_limits<double>::infinity();
  if (planner.graph.tasks[task].kind == TaskKind::transfer) return always;
  const AlgorithmMessage message = message_of(planner, task);
  const double waits = message.traffic.rounds * message.links.latency;
  return waits > 0 ? message.traffic.bytes_per_link / message.links.bandwidth / waits : always;
}

bool is_traffic(const EdgeSet& set, double busyness) { return busyness * set.overload >= negligible; }

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

}  // namespace slipway::sim
