#include "schedules/graph/task_graph.h"

#include <algorithm>

namespace slipway::schedules {

Rows transposed(const Rows& rows) {
  Rows result;
  result.begin.assign(rows.size() + 1, 0);
  for (const auto value : rows.values) ++result.begin[value + 1];
  for (std::size_t i = 0; i < rows.size(); ++i) result.begin[i + 1] += result.begin[i];
  result.values.resize(rows.values.size());
  std::vector<std::uint32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const auto value : rows[row]) result.values[next[value]++] = static_cast<std::uint32_t>(row);
  }
  return result;
}

std::int64_t gradient_samples(const TaskGraph& graph) {
  // The micro-batches of a pipeline are shared out among copies of the model.
  return static_cast<std::int64_t>(graph.step.layout.data) *
         (graph.step.layout.zero >= 2 ? graph.micro_batches : graph.placement.copies);
}

bool goes_one_way(const TaskGraph& graph, const Task& task) {
  return task.kind == TaskKind::transfer || graph.work(task).collective == Collective::send;
}

bool runs_experts(const Operator& op) { return (op.kind == OpKind::up || op.kind == OpKind::down) && op.experts > 0; }

bool is_recomputed(Recompute recompute, const Block& block) {
  return recompute == Recompute::full && block.kind == BlockKind::transformer;
}

bool gathers_again(const TaskGraph& graph, const Work& work) {
  return work.kind == WorkKind::wire_collective && (work.pass == Pass::backward || work.pass == Pass::weight_grad) &&
         work.collective == Collective::all_gather && gathers_input(graph.operators(work)[work.first_op]);
}

void set_stage_operators(TaskGraph& graph) {
  graph.stage_operators.clear();
  for (const BlockRange& range : graph.stages) {
    for (int slice = 0; slice < graph.step.slices; ++slice) {
      WorkShape shape = graph.shape();
      shape.before = slice * shape.sequence;
      graph.stage_operators.push_back(operators_of(graph.step.model, range.first, range.last, shape));
    }
  }
}

std::string label_of(const TaskGraph& graph, TaskId id) { return label_of(graph, graph.tasks[id]); }

std::string label_of(const TaskGraph& graph, const Task& task) {
  const Work& work = graph.work(task);
  std::string label;
  if (work.stage != none) label = std::to_string(work.stage);
  if (task.micro_batch != none) {
    const std::string visit =
        std::to_string(task.micro_batch) + (task.slice != 0 ? "/" + std::to_string(task.slice) : "");
    if (work.pass == Pass::none) return label + work.suffix + visit;
    label += letter_of(work.pass) + visit;
  }
  if (label.empty()) return work.suffix.substr(work.suffix.empty() ? 0 : 1);
  return label + work.suffix;
}

namespace {

const char* pass_kind(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::input_grad:
      return "input-grad";
    case Pass::weight_grad:
      return "weight-grad";
    case Pass::recompute:
      return "recompute";
    case Pass::none:
      break;
  }
  return "compute";
}

}  // namespace

std::string kind_of(const TaskGraph& graph, TaskId id) {
  const Task& task = graph.tasks[id];
  const Work& work = graph.work(task);
  switch (task.kind) {
    case TaskKind::transfer:
      return "transfer";
    case TaskKind::collective:
      if (work.kind == WorkKind::host_copy) return graph.communicator(id).name == "to_host" ? "offload" : "reload";
      return name_of(work.collective);
    case TaskKind::optimizer:
      return "optimizer";
    case TaskKind::bubble_work:
      return work.bubble_work;
    case TaskKind::compute:
      break;
  }
  if (work.kind == WorkKind::grad_norm) return "grad-norm";
  if (work.kind == WorkKind::worker_norm) return "worker-norm";
  if (work.kind == WorkKind::precondition) return "precondition";
  if (work.kind == WorkKind::tied_grad_reduce) return "tied-grad";
  return pass_kind(work.pass);
}

std::span<const std::int32_t> members_of(const TaskGraph& graph, TaskId id) {
  const Task& task = graph.tasks[id];
  if (task.communicator == none) return {&task.rank, 1};
  return graph.communicator(task).ranks;
}

bool is_lowered(const TaskGraph& graph, std::int32_t rank) {
  return representative_of(graph.step.layout, graph.representatives, rank) == rank;
}

double flops_of(const TaskGraph& graph, TaskId id) {
  const Work& work = graph.work(id);
  if (work.kind != WorkKind::segment) return 0;
  const auto operators = graph.operators(work);
  double flops = 0;
  for (int i = work.first_op; i < work.last_op; ++i) {
    const Operator& op = operators[i];
    if (work.pass == Pass::forward || work.pass == Pass::recompute) flops += op.forward_flops;
    if (work.pass == Pass::backward || work.pass == Pass::input_grad)
      flops += op.input_grad_flops + (op.again ? op.forward_flops : 0);
    if (work.pass == Pass::backward || work.pass == Pass::weight_grad) flops += op.weight_grad_flops;
  }
  return flops;
}

std::vector<Lane> lanes_of(const TaskGraph& graph) {
  std::vector<Lane> lanes;
  const auto ranks = static_cast<std::size_t>(rank_count(graph.step.layout));
  std::vector<std::size_t> lane_of_rank(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    lane_of_rank[r] = lanes.size();
    if (is_lowered(graph, static_cast<std::int32_t>(r))) lanes.push_back({static_cast<std::int32_t>(r), none, {}});
  }
  std::vector<std::size_t> first_lane;  // of each communicator, and one past the last
  for (std::size_t c = 0; c < graph.communicators.size(); ++c) {
    first_lane.push_back(lanes.size());
    for (const auto rank : graph.communicators[c].ranks)
      if (is_lowered(graph, rank)) lanes.push_back({rank, static_cast<std::int32_t>(c), {}});
  }
  first_lane.push_back(lanes.size());
  for (const TaskId id : graph.order) {
    const Task& task = graph.tasks[id];
    if (task.communicator == none) {
      lanes[lane_of_rank[task.rank]].tasks.push_back(id);
      continue;
    }
    const auto c = static_cast<std::size_t>(task.communicator);
    for (std::size_t lane = first_lane[c]; lane < first_lane[c + 1]; ++lane) lanes[lane].tasks.push_back(id);
  }
  return lanes;
}

std::string lane_name(const TaskGraph& graph, const Lane& lane) {
  if (lane.communicator == none) return "compute";
  return graph.communicators[lane.communicator].name;
}

}  // namespace slipway::schedules
