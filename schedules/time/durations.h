// Seconds of every task of a graph on a cluster, in closed form. The list replay and the executor's expectation use them
// for all tasks, the simulator for everything but flows.
//
//   compute    work_price.h      messages   message_price.h      losses beside messages   beside.h      hosts   host_issue.h
//
// Guarded by tests/schedules/beside_test.cpp and tests/sim/trained_step_test.cpp.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/graph/task_graph.h"
#include "schedules/time/host_issue.h"

namespace slipway::schedules {

struct Durations {
  std::vector<double> seconds;  // per task
  HostIssue host;
  Durations() = default;
  explicit Durations(std::size_t tasks) : seconds(tasks) {}
  Durations(std::vector<double> each) : seconds(std::move(each)) {}
  Durations(std::initializer_list<double> each) : seconds(each) {}
  double& operator[](std::size_t task) { return seconds[task]; }
  double operator[](std::size_t task) const { return seconds[task]; }
  std::size_t size() const { return seconds.size(); }
  void push_back(double each) { seconds.push_back(each); }
  auto begin() const { return seconds.begin(); }
  auto end() const { return seconds.end(); }
};

// Each task for itself. Throws std::invalid_argument when the cluster has fewer GPUs than the layout has ranks, no fabric
// connects two members, or a machine cannot price an operator.
Durations durations_alone(const TaskGraph& graph, const PricedCluster& cluster);
// The same with what products lose beside messages.
Durations durations_of(const TaskGraph& graph, const PricedCluster& cluster);

// Returns durations_of with the hosts' issue, and sets the graph's global order. The order is that of the cluster
// without degradation, because ranks run in an order that was made without slow GPUs and ports.
Durations order_and_price(TaskGraph& graph, const PricedCluster& cluster);

}  // namespace slipway::schedules
