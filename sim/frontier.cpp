#include "sim/frontier.h"

#include <algorithm>

#include "schedules/graph/parallel.h"

namespace slipway::sim {
namespace {

// Rows from (row, value) pairs. The function calls its argument once per pair, in the same order both times it runs.
template <class Visit>
Rows rows_of(std::size_t count, const Visit& visit) {
  Rows rows;
  rows.begin.assign(count + 1, 0);
  visit([&](std::uint32_t row, std::uint32_t) { ++rows.begin[row + 1]; });
  for (std::size_t row = 0; row < count; ++row) rows.begin[row + 1] += rows.begin[row];
  rows.values.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  visit([&](std::uint32_t row, std::uint32_t value) { rows.values[next[row]++] = value; });
  return rows;
}

// The units of each lane: a chain stands once in each of its lanes, where its tasks are consecutive.
void index_lanes(const TaskGraph& graph, UnitGraph& units) {
  units.lanes = lanes_of(graph);
  std::erase_if(units.lanes, [](const Lane& lane) { return lane.tasks.empty(); });
  Rows& of_lane = units.of_lane;
  for (Lane& lane : units.lanes) {
    for (const TaskId task : lane.tasks) {
      const std::uint32_t unit = units.chains->unit_of[task];
      if (of_lane.values.size() == of_lane.begin.back() || of_lane.values.back() != unit)
        of_lane.values.push_back(unit);
    }
    of_lane.begin.push_back(static_cast<std::uint32_t>(of_lane.values.size()));
    lane.tasks = {};
  }
  units.lanes_of = rows_of(units.count, [&](const auto& pair) {
    for (std::uint32_t lane = 0; lane < units.lanes.size(); ++lane)
      for (const std::uint32_t unit : of_lane[lane]) pair(unit, lane);
  });
}

// Edges between units, without those inside a chain.
void index_edges(const TaskGraph& graph, UnitGraph& units) {
  const auto& unit_of = units.chains->unit_of;
  units.successors = rows_of(units.count, [&](const auto& pair) {
    for (TaskId task = 0; task < graph.tasks.size(); ++task)
      for (const TaskId next : graph.successors[task])
        if (unit_of[task] != unit_of[next]) pair(unit_of[task], unit_of[next]);
  });
  units.carried = rows_of(units.count, [&](const auto& pair) {
    for (const auto& [from, to] : graph.carried) pair(unit_of[from], unit_of[to]);
  });
}

void count_blockers(Frontier& frontier) {
  const UnitGraph& units = *frontier.units;
  std::vector<std::uint32_t> first(units.count);
  for (std::uint32_t unit = 0; unit < units.count; ++unit)
    first[unit] = static_cast<std::uint32_t>(units.lanes_of[unit].size());
  for (const std::uint32_t next : units.successors.values) ++first[next];
  std::vector<std::uint32_t> later = first;
  for (const std::uint32_t next : units.carried.values) ++later[next];
  frontier.blockers = std::move(first);
  frontier.blockers.reserve(std::size_t{units.count} * static_cast<std::size_t>(frontier.steps));
  for (int step = 1; step < frontier.steps; ++step)
    frontier.blockers.insert(frontier.blockers.end(), later.begin(), later.end());
}

void unblock(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  if (--frontier.blockers[instance] == 0) ready.push_back(instance);
}

}  // namespace

UnitGraph unit_graph_of(const TaskGraph& graph, const Chains& chains) {
  UnitGraph units;
  units.count = static_cast<std::uint32_t>(chains.tasks.size());
  units.chains = &chains;
  queued_in_parallel(2, graph.tasks.size(),
                     [&](std::size_t half) { half == 0 ? index_lanes(graph, units) : index_edges(graph, units); });
  return units;
}

Frontier make_frontier(const UnitGraph& units, int steps, std::vector<Instance>& ready) {
  Frontier frontier;
  frontier.units = &units;
  frontier.steps = steps;
  count_blockers(frontier);
  frontier.heads.resize(units.lanes.size());
  for (std::size_t lane = 0; lane < units.lanes.size(); ++lane) unblock(frontier, units.of_lane[lane].front(), ready);
  return frontier;
}

void advance(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  const UnitGraph& units = *frontier.units;
  const std::uint32_t unit = frontier.unit_of(instance);
  const Instance base = instance - unit;
  for (const std::uint32_t lane : units.lanes_of[unit]) {
    Frontier::Head& head = frontier.heads[lane];
    const auto of_lane = units.of_lane[lane];
    if (++head.position == of_lane.size()) {
      head.position = 0;
      if (++head.step == static_cast<std::uint32_t>(frontier.steps)) continue;
    }
    unblock(frontier, head.step * units.count + of_lane[head.position], ready);
  }
  for (const std::uint32_t next : units.successors[unit]) unblock(frontier, base + next, ready);
  if (base + units.count < frontier.blockers.size())
    for (const std::uint32_t next : units.carried[unit]) unblock(frontier, base + units.count + next, ready);
}

}  // namespace slipway::sim
