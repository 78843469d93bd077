// Closed-form seconds of every task of a graph on a cluster. The list replay and the executor's expectation use them
// for all tasks, the simulator for everything but flows.
#pragma once

#include <functional>
#include <span>

#include "models/machine/cost.h"
#include "models/machine/machine.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

// Seconds of the update of `elements` parameters: the GPU's share and then the host's.
double update_seconds(const Optimizer& optimizer, double elements, Dtype dtype, const Machine& machine);

// Seconds of one work of a compute lane on `machine`, task_overhead included. Throws std::invalid_argument
// when the machine cannot price an operator.
double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine);
// Seconds of one transfer or collective over links of this latency (s) and bandwidth (bytes/s).
double message_seconds(const Work& work, int members, double latency, double bandwidth, double reduce_bandwidth);
// The same, by the algorithm that the message takes on this path.
double message_seconds(const Work& work, int members, const LinkPath& path);

// Seconds of what members do to a message before they send it: around a ring, they add their own gradient to it. The
// slowest member counts.
double seconds_before(const Work& work, const Communicator& communicator, const Cluster& cluster);

// What a trainer sends of a message: Megatron cuts one between stages by tensor rank and joins it in the node; some
// trainers all-reduce gradients of which they need a part.
Work as_sent(const Layout& layout, const Work& work, const LinkPath& path);
// Messages for one of the graph's: a trainer that reduces each tensor by itself has one for each of a layer's.
int messages_for(const Work& work, const LinkPath& path);

// The host launches kernels one by one.
bool has_host(const Machine& machine);
// Seconds of a rank's host for a work: its launches, and what it does itself for the members of a tensor group.
double host_seconds(const TaskGraph& graph, const Work& work, int members, Axis axis, const Machine& machine);
// Its part, once per recomputed block and micro-batch: the states of the random generators are read before the first
// forward pass; read, set and set back around the second one (PyTorch torch/utils/checkpoint.py, Megatron-LM
// megatron/core/tensor_parallel/random.py). Each takes the host as long as a kernel.
double host_seconds_of_checkpoint(const Machine& machine);
// host_seconds of any work but a segment.
double host_seconds(WorkKind kind, int members, Axis axis, const Machine& machine);

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
void each_loss_beside(const TaskGraph& graph, const Cluster& cluster, const Durations& durations, bool included,
                      const std::function<void(const LossBeside&)>& visit);

// Each task for itself. Throws std::invalid_argument when the cluster has fewer GPUs than the layout has ranks, no fabric
// connects two members, or a machine cannot price an operator.
Durations durations_alone(const TaskGraph& graph, const Cluster& cluster);
// To durations without losses.
void add_losses_beside(const TaskGraph& graph, const Cluster& cluster, Durations& durations);
// Both.
Durations durations_of(const TaskGraph& graph, const Cluster& cluster);

// When the hosts issue the tasks of a graph that has its global order.
HostIssue host_issue_of(const TaskGraph& graph, const Cluster& cluster);

// Returns durations_of with the hosts' issue, and sets the graph's global order. The order is that of the cluster
// without degradation, because ranks run in an order that was made without slow GPUs and ports.
Durations order_and_price(TaskGraph& graph, const Cluster& cluster);

}  // namespace slipway::schedules
