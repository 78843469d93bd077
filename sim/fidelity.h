// The form of each task in the simulator: a duration, or a delay and then flows on fabric ports.
//
//   transfer            latency, then one flow sender → receiver
//   collective          rounds·α (and the additions), then a flow on each edge of its algorithm's pattern
//                       (sim/patterns.h). A ring has a flow of its bytes per link from each member to the next.
//                       It is done when the last flow ends. α is the slowest edge's, or the algorithm's mean.
//   everything else     its duration
//
// GPUs with measured collectives: the delay also has the message's start, and the flows of a collective alone take what
// its price has beside that. Each flow has at most the rate at which it does: where GPUs share a port, the price expects
// that all use it at the same time, and so does the rate.
//
// There are n flows instead of 2(n−1) rounds: every edge carries the same bytes per round, so the pipeline of rounds
// takes as long as one long flow on each edge at once.
//
// `automatic` makes a collective flows when its time can depend on others. Then some link on its ways (ports, and what
// a topology has between them) carries edges that together would send more than it can. They may be other
// communicators' or its own. Collectives such as a scalar over all ranks count as no traffic: all others together, on
// the most loaded link, would slow them by less than 1 % of their latency. They stay closed forms and make no other
// contended. In a graph of representative ranks (schedules/lower/representatives.h) their edges represent all edges. An
// edge that leaves them arrives at the representative of its end, which may be its start. Equal flows to ranks that one
// represents are one flow that gets as much of a link as all of them. Guarded by
// tests/sim/collective_test.cpp and tests/sim/algorithm_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"
#include "sim/simulate.h"

namespace slipway::sim {

struct Edge {
  std::int32_t from = 0, to = 0;  // ranks
  std::int32_t fabric = 0;
  double share = 1;  // of the task's bytes that one flow carries (sim/patterns.h)
  double weak = 1;   // largest share of the fabric's bandwidth for one flow, for a weak pair of nodes
  int flows = 1;     // equal flows, to ranks that one represents
};

struct TaskForm {
  double seconds = 0;                           // duration; with flows, the delay before them
  double bytes = 0;                             // of an edge with share 1; 0: no flows
  double least_s = 0;                           // that each flow takes, however free its links are
  std::uint32_t first_edge = 0, last_edge = 0;  // of the flows
};

inline const HostIssue no_hosts;

struct TaskForms {
  std::vector<TaskForm> tasks;
  std::vector<Edge> edges;
  const HostIssue* host = &no_hosts;  // that of the durations, which outlive the forms
};

// One of several steps that share a cluster's links. `cluster` has its ranks' places and the costs of messages.
struct TimedStep {
  const TaskGraph& graph;
  const PricedCluster& cluster;
  const Durations& durations;
};

// Throws std::invalid_argument for too few GPUs, no fabric between two members, or an impossible duration.
TaskForms task_forms(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                     CollectiveFidelity fidelity);
// The forms of each of several steps. All of them together contend for a link.
std::vector<TaskForms> task_forms(std::span<const TimedStep> steps, CollectiveFidelity fidelity);

}  // namespace slipway::sim
