#include "schedules/time/stack_pace.h"

#include <algorithm>
#include <stdexcept>

#include "models/machine/collectives.h"
#include "models/machine/cost.h"

namespace slipway::schedules {
namespace {

struct BlockSums {
  double forward = 0, backward = 0;            // seconds of its operators as counted
  double tensor_bytes = 0, context_bytes = 0;  // over each link of the groups' rings, both directions
};

BlockSums sums_of(const Step& step, int block, const Machine& machine) {
  BlockSums sums;
  for (const Operator& op : operators_of(step.model, block, block + 1, work_shape(step))) {
    if (op.kind != OpKind::communicate) {
      sums.forward += operator_seconds(machine, op, Direction::forward);
      sums.backward += operator_seconds(machine, op, Direction::backward);
      continue;
    }
    const bool context = op.axis == Axis::context;
    const int members = context ? step.layout.context : step.layout.tensor;
    (context ? sums.context_bytes : sums.tensor_bytes) +=
        ring_traffic(op.forward, members, op.message_bytes).bytes_per_link +
        op.backward_messages * ring_traffic(op.backward, members, op.message_bytes).bytes_per_link;
  }
  return sums;
}

// Bytes of the fullest pipeline rank's gradients and weights, over each link of its data-parallel ring.
double reduction_bytes(const Step& step) {
  double elements = 0;
  for (const StaticBytes& held : static_bytes_of(step))
    elements = std::max(elements, held.weights / bytes_of(step.dtype));
  const int members = step.layout.data * step.layout.context;
  const auto ring = [&](Collective collective, Dtype dtype) {
    return ring_traffic(collective, members, elements * bytes_of(dtype)).bytes_per_link;
  };
  if (step.layout.zero < 1) return ring(Collective::all_reduce, step.gradient_dtype);
  return ring(Collective::reduce_scatter, step.gradient_dtype) + ring(Collective::all_gather, step.dtype);
}

const StackTime& constants_on(const Stack& stack, const Machine& machine) {
  if (const StackTime* time = time_on(stack, machine.name)) return *time;
  std::string fitted;
  for (const StackTime& time : stack.times) fitted += (fitted.empty() ? "" : ", ") + time.machine;
  throw std::invalid_argument("the stack profile " + stack.trainer + " has no constants for machine " + machine.name +
                              "; fitted on: " + fitted + "; leave cluster.stack out, or choose one of these");
}

void set_cost(Cluster& cluster, Axis axis, double bytes, double seconds) {
  if (bytes > 0 && seconds > 0) cluster.message_costs[static_cast<std::size_t>(axis)] = {0, bytes / seconds};
}

void set_pace(Machine& machine, const StepParts& parts, const BlockSums& layer, const BlockSums& head,
              double head_messages) {
  machine.layer_pace = {parts.layer_forward / layer.forward, parts.layer_backward / layer.backward};
  const double pace = std::max(parts.head - head_messages, 0.0) / (head.forward + head.backward);
  machine.head_pace = {pace, pace};
  machine.step_overhead = parts.fixed;
}

// A fitted ring holds only its visible time: the rounds' own kernels and what attention leaves of the messages. On a
// lane of its own that would be hidden once more. So the rounds take it, a third forward (keys and values go around
// once, and backward twice), and messages take what their fabric gives.
StepParts as_shown(StepParts parts, const Sharding& sharding) {
  if (sharding.exchange != ContextExchange::ring) return parts;
  parts.layer_forward += parts.layer_context / 3;
  parts.layer_backward += parts.layer_context * 2 / 3;
  parts.layer_context = 0;
  return parts;
}

bool has_wide_heads(const Block& block) { return block.heads * block.head_dim != block.hidden; }

// The layer of Hagemann 2023 and Fujii 2024 with the same h, f, a and k.
Model as_formulas_know(Model model) {
  for (BlockRun& run : model.runs) {
    Block& block = run.block;
    if (block.kind != BlockKind::transformer) continue;
    block.qk_norm = false;
    if (has_wide_heads(block)) block.head_dim = std::max<std::int64_t>(1, block.hidden / block.heads);
  }
  return model;
}

}  // namespace

std::vector<const char*> unknown_to_formulas(const Model& model) {
  const auto some = [&](auto has) {
    return std::any_of(model.runs.begin(), model.runs.end(),
                       [&](const BlockRun& run) { return run.block.kind == BlockKind::transformer && has(run.block); });
  };
  std::vector<const char*> features;
  if (some([](const Block& block) { return block.qk_norm; })) features.push_back("norms of query and key");
  if (some(has_wide_heads)) features.push_back("heads that are not hidden/heads wide");
  return features;
}

StepWork step_work_of(const Step& step, const Machine& machine, int gpus_per_node) {
  StepWork work = step_work(step.model, machine, step.dtype);
  const Layout& layout = step.layout;
  work.s = static_cast<double>(work_shape(step).sequence);
  work.b = static_cast<double>(step.micro_batch);
  work.m = static_cast<double>(step.global_batch) / (work.b * layout.data);
  work.t = layout.tensor;
  work.c = layout.context;
  work.p = layout.pipeline;
  work.d = layout.data;
  work.gpus = rank_count(layout);
  work.gpus_per_node = gpus_per_node;
  work.sequence_parallel = step.layout.sequence_parallel;
  work.zero = layout.zero;
  work.kernels = step.kernels;
  work.recompute = step.recompute;
  work.gradient_bytes = bytes_of(step.gradient_dtype);
  return work;
}

Cluster at_pace(Cluster cluster, const Stack& stack, const Step& sliced) {
  Step step = sliced;  // no trainer cuts sequences into slices, so its pace is that of whole ones
  step.model = as_formulas_know(step.model);
  step.slices = 1;
  cluster.algorithms = default_algorithms;  // message costs were fitted as rings
  const int blocks = static_cast<int>(blocks_of(step.model).size());
  for (std::size_t g = 0; g < cluster.groups.size(); ++g) {
    Machine& machine = cluster.groups[g].machine;
    machine.layer_pace = machine.head_pace = {};
    const StackTime& constants = constants_on(stack, machine);
    StepWork work = step_work_of(step, machine, cluster.groups[g].gpus_per_node);
    const StepParts parts = as_shown(stack.model->parts(work, values_of(constants)), sharding_of(step.layout));
    const BlockSums layer = sums_of(step, 1, machine), head = sums_of(step, blocks - 1, machine);
    if (g == 0) {  // messages between groups cost what they cost in the first
      set_cost(cluster, Axis::tensor, layer.tensor_bytes, parts.layer_tensor);
      set_cost(cluster, Axis::context, layer.context_bytes, parts.layer_context);
      set_cost(cluster, Axis::pipeline, boundary_bytes(step.model, work_shape(step)), parts.transfer);
      if (parts.data_bandwidth > 0)
        cluster.message_costs[static_cast<std::size_t>(Axis::data)] = {0, parts.data_bandwidth};
      else
        set_cost(cluster, Axis::data, reduction_bytes(step), parts.reduction);
    }
    const MessageCost& tensor = cluster.message_costs[static_cast<std::size_t>(Axis::tensor)];
    set_pace(machine, parts, layer, head, tensor.bandwidth > 0 ? head.tensor_bytes / tensor.bandwidth : 0);
  }
  return cluster;
}

}  // namespace slipway::schedules
