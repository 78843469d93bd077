// I1. The only file that includes Boost.Graph.
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>

#include <algorithm>

#include "schedules/graph/findings.h"

namespace slipway {
namespace {

using Csr = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                               boost::no_property, std::uint32_t, std::size_t>;

Csr csr_of(const TaskGraph& graph) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(graph.successors.values.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId next : graph.successors[id]) edges.emplace_back(id, next);
  }
  return {boost::edges_are_sorted, edges.begin(), edges.end(),
          static_cast<std::uint32_t>(graph.tasks.size())};
}

bool has_topological_order(const Csr& graph) {
  std::vector<std::uint32_t> order;
  order.reserve(boost::num_vertices(graph));
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return false;
  }
  return true;
}

// A global order in which every task comes after what it waits for is such an order: looking is quicker than
// finding one.
bool is_topological(const TaskGraph& graph) {
  const std::vector<std::uint32_t> position = positions_of(graph);
  if (position.size() != graph.tasks.size()) return false;
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const TaskId next : graph.successors[id])
      if (position[next] <= position[id]) return false;
  return true;
}

// One circle of tasks: what remains when everything that can run has run waits for something that remains
// too, so walking backwards inside the rest must come round.
std::vector<TaskId> circle_in(const TaskGraph& graph) {
  std::vector<std::uint32_t> waiting(graph.tasks.size());
  std::vector<TaskId> ready;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId next : graph.successors[id]) ++waiting[next];
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (waiting[id] == 0) ready.push_back(id);
  }
  while (!ready.empty()) {
    const TaskId id = ready.back();
    ready.pop_back();
    for (const TaskId next : graph.successors[id]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  // before[x] = a task of the rest that x waits for.
  std::vector<std::int64_t> before(graph.tasks.size(), none), visited(graph.tasks.size(), none);
  std::int64_t at = none;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (waiting[id] == 0) continue;
    if (at == none) at = id;
    for (const TaskId next : graph.successors[id]) {
      if (waiting[next] > 0) before[next] = id;
    }
  }
  std::vector<TaskId> path;
  while (visited[static_cast<std::size_t>(at)] == none) {
    visited[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(path.size());
    path.push_back(static_cast<TaskId>(at));
    at = before[static_cast<std::size_t>(at)];
  }
  path.erase(path.begin(), path.begin() + visited[static_cast<std::size_t>(at)]);
  std::reverse(path.begin(), path.end());
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  return path;
}

// `successors` must be `predecessors` read the other way: engines use either.
void check_transposed(const TaskGraph& graph, Findings& findings) {
  std::vector<std::uint64_t> balance(graph.tasks.size(), 0);  // sum of hashes of both ends' views
  const auto mixed = [](std::uint64_t x) { return (x + 0x9E3779B97F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL; };
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    for (const TaskId before : graph.predecessors[id]) balance[id] += mixed(before);
    for (const TaskId next : graph.successors[id]) balance[next] -= mixed(id);
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (balance[id] != 0) {
      findings.add({id},
                   "the predecessors of " + spoken(graph, id) + " are not those that name it as successor");
    }
  }
}

}  // namespace

std::vector<Violation> check_acyclic(const TaskGraph& graph) {
  Findings findings(1);
  if (!is_topological(graph) && !has_topological_order(csr_of(graph))) {
    std::vector<TaskId> circle = circle_in(graph);
    constexpr std::size_t most_named = 12;
    std::string path;
    for (std::size_t i = 0; i < std::min(circle.size(), most_named); ++i)
      path += label_of(graph, circle[i]) + " → ";
    if (circle.size() > most_named) path += "… → ";
    path += label_of(graph, circle.front());
    findings.add(std::move(circle), "tasks wait for each other in a circle: " + path);
  }
  check_transposed(graph, findings);
  return findings.take();
}

}  // namespace slipway
