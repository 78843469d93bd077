#include "sim/frontier.h"

#include <algorithm>

namespace slipway {
namespace {

// Rows from (row, value) pairs given by a function that calls its argument once per pair, in the same
// order both times it is asked.
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

// The units of each lane: a chain stands once in each of its lanes, where its tasks follow one another.
void index_lanes(const TaskGraph& graph, Frontier& frontier) {
  frontier.lanes = lanes_of(graph);
  std::erase_if(frontier.lanes, [](const Lane& lane) { return lane.tasks.empty(); });
  Rows& units = frontier.lane_units;
  for (Lane& lane : frontier.lanes) {
    for (const TaskId task : lane.tasks) {
      const std::uint32_t unit = frontier.chains->unit_of[task];
      if (units.values.size() == units.begin.back() || units.values.back() != unit) units.values.push_back(unit);
    }
    units.begin.push_back(static_cast<std::uint32_t>(units.values.size()));
    lane.tasks = {};
  }
  frontier.unit_lanes = rows_of(frontier.units, [&](const auto& pair) {
    for (std::uint32_t lane = 0; lane < frontier.lanes.size(); ++lane)
      for (const std::uint32_t unit : units[lane]) pair(unit, lane);
  });
}

// Edges between units; those inside a chain are its own affair.
void index_edges(const TaskGraph& graph, Frontier& frontier) {
  const auto& unit_of = frontier.chains->unit_of;
  frontier.successors = rows_of(frontier.units, [&](const auto& pair) {
    for (TaskId task = 0; task < graph.tasks.size(); ++task)
      for (const TaskId next : graph.successors[task])
        if (unit_of[task] != unit_of[next]) pair(unit_of[task], unit_of[next]);
  });
  frontier.carried = rows_of(frontier.units, [&](const auto& pair) {
    for (const auto& [from, to] : graph.carried) pair(unit_of[from], unit_of[to]);
  });
}

void count_blockers(Frontier& frontier) {
  std::vector<std::uint32_t> first(frontier.units);
  for (std::uint32_t unit = 0; unit < frontier.units; ++unit)
    first[unit] = static_cast<std::uint32_t>(frontier.unit_lanes[unit].size());
  for (const std::uint32_t next : frontier.successors.values) ++first[next];
  std::vector<std::uint32_t> later = first;
  for (const std::uint32_t next : frontier.carried.values) ++later[next];
  frontier.blockers = std::move(first);
  frontier.blockers.reserve(std::size_t{frontier.units} * static_cast<std::size_t>(frontier.steps));
  for (int step = 1; step < frontier.steps; ++step)
    frontier.blockers.insert(frontier.blockers.end(), later.begin(), later.end());
}

void unblock(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  if (--frontier.blockers[instance] == 0) ready.push_back(instance);
}

}  // namespace

Frontier make_frontier(const TaskGraph& graph, const Chains& chains, int steps, std::vector<Instance>& ready) {
  Frontier frontier;
  frontier.units = static_cast<std::uint32_t>(chains.tasks.size());
  frontier.steps = steps;
  frontier.chains = &chains;
  index_lanes(graph, frontier);
  index_edges(graph, frontier);
  count_blockers(frontier);
  frontier.heads.resize(frontier.lanes.size());
  for (std::size_t lane = 0; lane < frontier.lanes.size(); ++lane)
    unblock(frontier, frontier.lane_units[lane].front(), ready);
  return frontier;
}

void advance(Frontier& frontier, Instance instance, std::vector<Instance>& ready) {
  const std::uint32_t unit = frontier.unit_of(instance);
  const Instance base = instance - unit;
  for (const std::uint32_t lane : frontier.unit_lanes[unit]) {
    Frontier::Head& head = frontier.heads[lane];
    const auto units = frontier.lane_units[lane];
    if (++head.position == units.size()) {
      head.position = 0;
      if (++head.step == static_cast<std::uint32_t>(frontier.steps)) continue;
    }
    unblock(frontier, head.step * frontier.units + units[head.position], ready);
  }
  for (const std::uint32_t next : frontier.successors[unit]) unblock(frontier, base + next, ready);
  if (base + frontier.units < frontier.blockers.size())
    for (const std::uint32_t next : frontier.carried[unit]) unblock(frontier, base + frontier.units + next, ready);
}

}  // namespace slipway
