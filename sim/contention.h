// The links that a step's messages load, and those that would have to carry more than they can (private to
// sim/fidelity.cpp, which turns tasks into flows).
//
//   set of edges      those that one algorithm uses in one communicator
//   load of a link    Σ of what each edge over it would send by itself
//   contended         a link of the set would have more than it carries
//
// A task is no traffic if its time on links is below 1 % of its latency and start, even when all others slow it down as
// much as they can. Guarded by tests/sim/collective_test.cpp and tests/sim/algorithm_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/machine/collectives.h"
#include "models/machine/priced_cluster.h"
#include "models/machine/ring.h"
#include "models/machine/topology.h"
#include "schedules/time/durations.h"
#include "schedules/time/link_path.h"
#include "sim/fidelity.h"
#include "sim/patterns.h"

namespace slipway::sim {

constexpr std::size_t no_set = 0xFFFFFFFF;

// Edges that flows of one pattern use in one communicator.
struct EdgeSet {
  std::uint32_t first = 0, last = 0;
  bool whole = true;    // each edge carries as much as a ring's link would
  double busiest = 0;   // the largest ratio of a task's time on links to its latency
  double overload = 1;  // bytes/s that would be sent over the most loaded link, per bytes/s that it carries
  double pace = 0;      // bytes/s of an edge with share 1, the fastest task's, where prices limit it; 0: its links do
  bool carries_traffic = false, contended = false;
};

// Per task: an earlier one of the same work, kind and members, whose form it shares, or itself.
std::vector<TaskId> alike_tasks(const TaskGraph& graph);
// True if the cluster has links that are not a single port's own.
bool has_shared_links(const Cluster& cluster);

// The use of links by a step's tasks: input and state.
struct LinkUse {
  const TaskGraph& graph;
  const PricedCluster& cluster;
  bool shares_links = has_shared_links(cluster);
  TaskForms forms{};
  std::vector<LinkPath> paths{};                                 // per communicator
  std::vector<std::array<std::size_t, pattern_kinds>> set_of{};  // [communicator][pattern]; no_set: none yet
  std::vector<EdgeSet> sets{};
  std::vector<std::uint32_t> set_of_task{};
  std::vector<TaskId> alike{};  // alike_tasks

  std::span<const Edge> edges_of(const EdgeSet& set) const {
    return {forms.edges.data() + set.first, forms.edges.data() + set.last};
  }
};

// A message as its algorithm sends it; one of the `messages` that a trainer makes of the task's.
struct AlgorithmMessage {
  const LinkPath& path;
  Algorithm algorithm;
  Links links;
  RingTraffic traffic;
  Collective collective = Collective::none;
  int members = 2;
  double bytes = 0;
  int messages = 1;
};

AlgorithmMessage message_of(const LinkUse& use, TaskId task);

// The load of a task's flows together, where it is priced by measured collectives: bytes of an edge with share 1, and
// the seconds that they take alone.
struct MeasuredFlows {
  double bytes = 0, seconds = 0;
};
MeasuredFlows measured_flows(const LinkUse& use, const AlgorithmMessage& message);
// Trees that NCCL would choose by size load the links that its rings would, for as long as the trees take. So members
// stay alike and the graph may have representative ranks. An explicit tree, or a graph that never has them, has a
// tree's edges.
bool has_tree_edges(const LinkUse& use, const LinkPath& path);
// Seconds of a hierarchical collective inside the nodes, before and after its flows.
double seconds_inside(const AlgorithmMessage& message);

// Seconds that the task loads its links if it is alone, divided by its seconds of latency and start; infinity for a
// transfer.
double busyness_of(const LinkUse& use, TaskId task);
bool is_traffic(const EdgeSet& set, double busyness);
// Sets `busiest`, `overload`, `carries_traffic` and `contended` of all sets. All steps together contend for a link.
void find_contention(std::vector<LinkUse>& uses);

}  // namespace slipway::sim
