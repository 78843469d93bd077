#include "sim/contention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "models/machine/ring.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"

namespace slipway::sim {
namespace {

constexpr double rounding = 1e-9;

// Share of a task's latency: a shorter time on links may be left out of its contention.
constexpr double negligible = 0.01;

// The pace of the edges of a set, per share of a whole one, where they meet on ports only. As in their closed form, all
// go at once and none waits.
double pace_of(const LinkUse& use, const EdgeSet& set) {
  std::map<std::array<int, 4>, double> busy;  // seconds per byte of a whole edge: fabric, node, port, direction
  const auto add = [&](const Edge& edge, std::int32_t rank, int direction, double seconds) {
    const Place place = place_of(use.cluster, rank);
    const int shared = std::max(1, use.cluster.fabrics[edge.fabric].gpus_per_port);
    return busy[{edge.fabric, place.node, place.gpu / shared, direction}] += seconds;
  };
  Route route;
  double longest = 0;
  for (const Edge& edge : use.edges_of(set)) {
    find_route(use.cluster, edge.fabric, edge.from, edge.to, route);
    const double alone = edge.share / std::exchange(route.cap, std::numeric_limits<double>::infinity());
    const double seconds = edge.flows * edge.share / narrowest(route);
    longest = std::max({longest, alone, add(edge, edge.from, 0, seconds), add(edge, edge.to, 1, seconds)});
  }
  return 1 / longest;
}

using Loads = std::unordered_map<std::uint64_t, double>;  // bytes/s that edges would send, by link

template <typename Each>
void visit_links(const LinkUse& use, const EdgeSet& set, Each each) {
  Route route;
  for (const Edge& edge : use.edges_of(set)) {
    find_route(use.cluster, edge.fabric, edge.from, edge.to, route);
    for (const RouteLink& link : route.links) each(link, edge, route);
  }
}

void find_busiest(LinkUse& use) {
  for (TaskId task = 0; task < use.graph.tasks.size(); ++task)
    if (use.set_of_task[task] != no_set && use.alike[task] == task) {
      EdgeSet& set = use.sets[use.set_of_task[task]];
      if (!std::isinf(set.busiest)) set.busiest = std::max(set.busiest, busyness_of(use, task));
      if (use.paths[use.graph.tasks[task].communicator].measured == nullptr) continue;
      const MeasuredFlows flows = measured_flows(use, message_of(use, task));
      set.pace = std::max(set.pace, flows.bytes / flows.seconds);
    }
}

template <typename Wanted>
void add_loads(const LinkUse& use, Loads& loads, Wanted wanted) {
  for (const EdgeSet& set : use.sets) {
    if (!wanted(set)) continue;
    const double pace = set.pace > 0 ? set.pace : set.whole ? 0 : pace_of(use, set);
    visit_links(use, set, [&](const RouteLink& link, const Edge& edge, const Route& route) {
      loads[link.id] += edge.flows * (set.pace > 0 || edge.share != 1 ? edge.share * pace : narrowest(route));
    });
  }
}

// Compares with the loads of everything that might send.
void find_traffic(LinkUse& use, const Loads& loads) {
  for (EdgeSet& set : use.sets) {
    visit_links(use, set, [&](const RouteLink& link, const Edge&, const Route&) {
      set.overload = std::max(set.overload, loads.at(link.id) / (link.bandwidth * (1 - link.down)));
    });
    set.carries_traffic = is_traffic(set, set.busiest);
  }
}

// Compares with the loads of real traffic.
void find_contention(LinkUse& use, const Loads& loads) {
  for (EdgeSet& set : use.sets)
    if (set.carries_traffic)
      visit_links(use, set, [&](const RouteLink& link, const Edge&, const Route&) {
        if (link.down > 0 || loads.at(link.id) > link.bandwidth * (1 + rounding)) set.contended = true;
      });
}

}  // namespace

std::vector<TaskId> alike_tasks(const TaskGraph& graph) {
  std::vector<TaskId> alike(graph.tasks.size()), last(graph.works.size(), std::numeric_limits<TaskId>::max());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    TaskId& of_work = last[static_cast<std::size_t>(task.work)];
    const bool is_new = of_work >= id || graph.tasks[of_work].communicator != task.communicator ||
                        graph.tasks[of_work].kind != task.kind;
    if (is_new) of_work = id;
    alike[id] = of_work;
  }
  return alike;
}

bool has_shared_links(const Cluster& cluster) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return !is_star(cluster, fabric); });
}

AlgorithmMessage message_of(const LinkUse& use, TaskId task) {
  const Work& work = use.graph.work(task);
  const std::size_t communicator = static_cast<std::size_t>(use.graph.tasks[task].communicator);
  const LinkPath& path = use.paths[communicator];
  double bytes = work.bytes;
  Collective collective = work.collective;
  int messages = 1;
  if (path.measured != nullptr) {
    const SentMessage sent = as_sent(use.graph.step.layout, work, path);
    messages = messages_for(sent, path);
    bytes = sent.bytes / messages;
    collective = sent.collective;
  }
  if (use.graph.tasks[task].kind == TaskKind::transfer)
    return {path, Algorithm::ring, {path.latency, path.bandwidth}, {bytes, 1, 0}};
  const int members = static_cast<int>(use.graph.communicators[communicator].ranks.size());
  const Algorithm algorithm = algorithm_of(path, collective, members, bytes);
  return {path,
          algorithm,
          links_of(path, collective, algorithm),
          ring_traffic(collective, members, bytes),
          collective,
          members,
          bytes,
          messages};
}

bool has_tree_edges(const LinkUse& use, const LinkPath& path) { return !path.chooses || use.shares_links; }

double seconds_inside(const AlgorithmMessage& message) {
  if (message.algorithm != Algorithm::hierarchical) return 0;
  const Span span = measured_span(message.path, message.collective);
  const double inside = span.nodes * (span.per_node - 1.0) / (span.members() - 1);
  return inside * message.traffic.bytes_per_link / span.inside.bandwidth;
}

// Inside a node, a port is busy for as long as the collective takes, whatever share of it that reaches.
MeasuredFlows measured_flows(const LinkUse& use, const AlgorithmMessage& message) {
  const LinkPath& path = message.path;
  const double times = path.measured->constants.whole * message.messages;
  MeasuredFlows flows{path.weight * message.traffic.bytes_per_link,
                      message.traffic.bytes_per_link / message.links.bandwidth - seconds_inside(message)};
  if (message.algorithm == Algorithm::tree && !has_tree_edges(use, path))
    flows.bytes *= path.bandwidth / path.tree.bandwidth;
  if (path.span.nodes == 1 && message.algorithm != Algorithm::ring && path.routes == RouteBytes{})
    flows.bytes *= path.bandwidth / message.links.bandwidth;
  return {times * flows.bytes, times * flows.seconds};
}

double busyness_of(const LinkUse& use, TaskId task) {
  constexpr double always = std::numeric_limits<double>::infinity();
  if (use.graph.tasks[task].kind == TaskKind::transfer) return always;
  const AlgorithmMessage message = message_of(use, task);
  const double waits = message.traffic.rounds * message.links.latency +
                       start_seconds(message.path, message.collective, message.members, message.bytes);
  return waits > 0 ? message.traffic.bytes_per_link / message.links.bandwidth / waits : always;
}

bool is_traffic(const EdgeSet& set, double busyness) { return busyness * set.overload >= negligible; }

void find_contention(std::vector<LinkUse>& uses) {
  Loads all, traffic;
  for (LinkUse& use : uses) {
    find_busiest(use);
    add_loads(use, all, [](const EdgeSet&) { return true; });
  }
  for (LinkUse& use : uses) {
    find_traffic(use, all);
    add_loads(use, traffic, [](const EdgeSet& set) { return set.carries_traffic; });
  }
  for (LinkUse& use : uses) find_contention(use, traffic);
}

}  // namespace slipway::sim
