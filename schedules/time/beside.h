// The time that products lose while messages run beside them: gradients that are reduced, weights that are gathered,
// tokens of another micro-batch on their way to experts.
//
// Guarded by tests/schedules/beside_test.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/graph/task_graph.h"
#include "schedules/time/durations.h"

namespace slipway::schedules {

// Compute tasks and the messages of data parallelism, or the all-to-alls of another micro-batch's tokens, which begin
// to run beside them: from the next task of each member on.
struct Beside {
  TaskId task, message;
};
std::vector<Beside> messages_beside(const TaskGraph& graph);

// While messages run beside a product, it takes 1 + x times as long (x = StepConstants::beside), so it loses x/(1 + x) of
// that time:
//
//   messages   ├──────────── m ────────────┤
//   products   ├── p (1 + x) ──┼── p + rest of m x/(1 + x) ──┼── p ──┤
//
// Messages run one after the other; those that a task waits for are over when it begins.
struct LossBeside {
  TaskId task;
  double seconds;
  // Where messages end beside the task: m x/(1 + x) summed over `messages`, less what `products` lost before it. Both are
  // empty where messages outlast the task: it loses p x.
  std::span<const TaskId> messages, products;
};
// Visits the losses of each rank in the order of its list, on machines that were fitted. `included`: durations have the
// losses already.
void each_loss_beside(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations, bool included,
                      const std::function<void(const LossBeside&)>& visit);

// To durations without losses.
void add_losses_beside(const TaskGraph& graph, const PricedCluster& cluster, Durations& durations);
}  // namespace slipway::schedules
