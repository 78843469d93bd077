#include "schedules/time/work_price.h"

#include <numeric>
#include <stdexcept>
#include <vector>

#include "models/machine/cost.h"
#include "models/training/kfac.h"
#include "schedules/time/direction.h"

namespace slipway::schedules {
namespace {

TimePart part_of(const Operator& op) {
  switch (op.kind) {
    case OpKind::qkv:
    case OpKind::compress:
    case OpKind::expand:
    case OpKind::out_projection:
    case OpKind::project:
    case OpKind::up:
    case OpKind::down:
      return op.experts > 0 ? TimePart::expert_products : TimePart::products;
    case OpKind::attention:
    case OpKind::ring_attention:
      return TimePart::attention;
    case OpKind::head_transform:
    case OpKind::logits:
    case OpKind::loss:
      return TimePart::head;
    default:
      return TimePart::element_wise;
  }
}

// Requires whole blocks: a table has no entries for parts.
double table_seconds(const TaskGraph& graph, const Work& work, const BlockTable& table) {
  if (work.kind != WorkKind::segment) return 0;
  const std::vector<Block> blocks = blocks_of(graph.step.model);
  const auto in_segment = graph.operators_run_by(work);
  double seconds = 0;
  for (int b = in_segment.front().block; b <= in_segment.back().block; ++b) {
    const Block& block = blocks[b];
    if (block.kind != BlockKind::transformer) continue;
    if (const std::string reason = mismatch(table, block, graph.shape()); !reason.empty())
      throw std::invalid_argument(reason);
    const BlockTimes& times = row_of(table, graph.step.micro_batch);
    double input_flops = 0, weight_flops = 0;
    for (const Operator& op : in_segment) {
      if (op.block != b) continue;
      input_flops += op.input_grad_flops;
      weight_flops += op.weight_grad_flops;
    }
    const double input_share = input_flops / (input_flops + weight_flops);  // for a split backward
    seconds += work.pass == Pass::backward      ? times.backward_s
               : work.pass == Pass::input_grad  ? times.backward_s * input_share
               : work.pass == Pass::weight_grad ? times.backward_s * (1 - input_share)
                                                : times.forward_s;
  }
  return seconds;
}

// Seconds of this rank's share: the replicas of a stage, with its copies in the pipeline, divide its Linears.
double precondition_seconds(const TaskGraph& graph, const Work& work, const Machine& machine) {
  const std::vector<Block> blocks = blocks_of(graph.step.model);
  const BlockRange range = graph.stages[work.stage];
  double seconds = 0;
  for (int block = range.first; block < range.last; ++block)
    for (const KfacSeconds& linear : kfac_seconds(blocks[block], graph.shape(), machine))
      seconds += linear.precondition;
  return seconds / (static_cast<double>(graph.step.layout.data) * graph.step.layout.context * graph.placement.copies);
}

// The seconds that a step takes once are added to the update of each rank's first stage.
bool is_first_of_its_rank(const TaskGraph& graph, std::int32_t stage) {
  const Placement& placement = graph.placement;
  for (const int first : placement.by_part())
    if (placement.rank[first] == placement.rank[stage]) return first == stage;
  return false;
}

BlockElements elements_of_stage(const TaskGraph& graph, int stage) {
  const bool one_table = shares_table(graph.step.model, graph.step.layout, graph.placement);
  BlockElements held;
  if (graph.step.narrow == NarrowRecipe::none) return held;
  for (int block = graph.stages[stage].first; block < graph.stages[stage].last; ++block)
    held += elements_of_block(graph.step, block, one_table);
  return held;
}

bool includes_input_grad(Direction direction) {
  return direction == Direction::input_grad || direction == Direction::backward;
}

// Adds the operators' seconds in their order.
void add_operators(std::span<const Operator> operators, Pass pass, const Machine& machine, WorkPrice& price) {
  const Direction direction = direction_of(pass);
  double all = 0;
  for (const Operator& op : operators) {
    if (op.kind == OpKind::communicate) continue;
    const double seconds = operator_seconds(machine, op, direction);
    double again = pass == Pass::recompute ? seconds : 0;
    if (op.again && includes_input_grad(direction)) again = operator_seconds(machine, op, Direction::forward);
    price.once[part_of(op)] += seconds - again;
    price.again[part_of(op)] += again;
    all += seconds;
  }
  price.seconds += all;
}

void add(WorkPrice& price, TimePart part, double seconds) {
  price.once[part] += seconds;
  price.seconds += seconds;
}

// In seconds of the machine's kernels: StepConstants::whole is still to be multiplied.
WorkPrice unscaled_price(const TaskGraph& graph, const Work& work, const Machine& machine) {
  WorkPrice price;
  const bool by_table = !machine.blocks.empty() && work.kind != WorkKind::precondition;
  if (by_table) {
    price.seconds = table_seconds(graph, work, machine.blocks);
    (work.pass == Pass::recompute ? price.again : price.once)[TimePart::blocks] = price.seconds;
    return price;
  }
  add(price, TimePart::host, machine.task_overhead);
  switch (work.kind) {
    case WorkKind::precondition:  // a part of the update
      add(price, TimePart::optimizer, precondition_seconds(graph, work, machine));
      return price;
    case WorkKind::segment:
      add_operators(graph.operators_run_by(work), work.pass, machine, price);
      return price;
    case WorkKind::optimizer_step:
      add(price, TimePart::optimizer, update_seconds(graph.step.optimizer, work.elements, work.dtype, machine));
      add(price, TimePart::optimizer,
          cast_seconds(machine, weight_cast_bytes(graph.step, elements_of_stage(graph, work.stage))));
      if (is_first_of_its_rank(graph, work.stage)) add(price, TimePart::fixed, machine.constants.fixed);
      return price;
    case WorkKind::worker_norm:
    case WorkKind::grad_norm:  // norms read gradients as other kernels read theirs
      add(price, TimePart::element_wise, norm_seconds(machine, work.elements * bytes_of(work.dtype)));
      return price;
    default:
      break;
  }
  throw std::logic_error("a communication work on a compute lane");
}

void scale(WorkPrice& price, double factor) {
  price.seconds *= factor;
  price.once *= factor, price.again *= factor;
}

}  // namespace

TimeParts& TimeParts::operator*=(double factor) {
  for (double& part : seconds) part *= factor;
  return *this;
}

double TimeParts::sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

TimePart part_of(Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return TimePart::tensor;
    case Axis::context:
      return TimePart::context;
    case Axis::expert:
    case Axis::expert_tensor:
      return TimePart::expert;
    case Axis::pipeline:
      return TimePart::pipeline;
    case Axis::data:
    case Axis::expert_data:
      return TimePart::data;
    default:
      return TimePart::other_messages;
  }
}

double update_seconds(const Optimizer& optimizer, double elements, Dtype dtype, const Machine& machine) {
  const double on_host = optimizer.offload_fraction * elements;
  return optimizer_seconds(machine, elements - on_host, dtype, optimizer.moment_dtype) +
         host_update_seconds(machine, on_host, dtype, optimizer.moment_dtype);
}

WorkPrice price_of(const TaskGraph& graph, const Work& work, const Machine& machine) {
  WorkPrice price = unscaled_price(graph, work, machine);
  scale(price, machine.constants.whole);
  return price;
}

WorkPrice price_of(std::span<const Operator> operators, Pass pass, const Machine& machine) {
  WorkPrice price;
  add_operators(operators, pass, machine, price);
  scale(price, machine.constants.whole);
  return price;
}

double compute_seconds(const TaskGraph& graph, const Work& work, const Machine& machine) {
  return price_of(graph, work, machine).seconds;
}

}  // namespace slipway::schedules
