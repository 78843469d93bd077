#include "schedules/time/breakdown.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "schedules/time/accounting.h"
#include "schedules/time/direction.h"
#include "schedules/time/metrics.h"

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

bool includes_input_grad(Direction direction) {
  return direction == Direction::input_grad || direction == Direction::backward;
}

void add_operators(const TaskGraph& graph, const Work& work, const Machine& machine, ComputeParts& parts) {
  const Direction direction = direction_of(work.pass);
  for (const Operator& op : graph.operators_run_by(work)) {
    if (op.kind == OpKind::communicate) continue;
    const double seconds = operator_seconds(machine, op, direction);
    double again = work.pass == Pass::recompute ? seconds : 0;
    if (op.again && includes_input_grad(direction)) again = operator_seconds(machine, op, Direction::forward);
    parts.once[part_of(op)] += seconds - again;
    parts.again[part_of(op)] += again;
  }
}

void scale(TimeParts& parts, double factor) {
  for (double& seconds : parts.seconds) seconds *= factor;
}

void add(TimeParts& parts, const TimeParts& more, double times) {
  for (std::size_t i = 0; i < time_part_count; ++i) parts.seconds[i] += times * more.seconds[i];
}

// What is made again is a part of its own.
TimeParts shown(const ComputeParts& parts) {
  TimeParts all = parts.once;
  all[TimePart::recompute] += parts.again.sum();
  return all;
}

}  // namespace

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

ComputeParts compute_parts(const TaskGraph& graph, const Work& work, const Machine& machine) {
  const double whole = compute_seconds(graph, work, machine);
  ComputeParts parts;
  const bool by_table = !machine.blocks.empty() && work.kind != WorkKind::precondition;
  if (by_table) {
    (work.pass == Pass::recompute ? parts.again : parts.once)[TimePart::blocks] = whole;
    return parts;
  }
  parts.once[TimePart::host] = machine.task_overhead;
  if (work.kind == WorkKind::segment) {
    add_operators(graph, work, machine, parts);
  } else if (work.kind == WorkKind::optimizer_step) {
    parts.once[TimePart::optimizer] =
        optimizer_seconds(machine, work.elements, work.dtype, graph.step.optimizer.moment_dtype);
  }
  scale(parts.once, machine.constants.whole), scale(parts.again, machine.constants.whole);
  // What remains of an update is what a step takes once (StepConstants::fixed). Norms read gradients as other kernels
  // read theirs; K-FAC's preconditioning is a part of the update.
  const double rest = whole - parts.once.sum() - parts.again.sum();
  if (work.kind == WorkKind::optimizer_step)
    parts.once[TimePart::fixed] += std::max(0.0, rest);
  else if (work.kind == WorkKind::precondition)
    parts.once[TimePart::optimizer] += rest;
  else if (work.kind != WorkKind::segment)
    parts.once[TimePart::element_wise] += rest;
  return parts;
}

namespace {

bool is_bubble_work(const TaskGraph& graph, std::int32_t work) {
  return graph.works[work].kind == WorkKind::bubble_work;
}

// The parts of each work on each group's machine, computed when asked for.
class PartsOfWorks {
 public:
  PartsOfWorks(const TaskGraph& graph, const Cluster& cluster)
      : graph_(graph), cluster_(cluster), known_(graph.works.size() * cluster.groups.size()) {}
  const TimeParts& of(std::int32_t work, int group) {
    auto& known = known_[static_cast<std::size_t>(work) * cluster_.groups.size() + static_cast<std::size_t>(group)];
    if (!known) known = shown(compute_parts(graph_, graph_.works[work], cluster_.groups[group].machine));
    return *known;
  }

 private:
  const TaskGraph& graph_;
  const Cluster& cluster_;
  std::vector<std::optional<TimeParts>> known_;
};

}  // namespace

TimeParts path_parts(const TaskGraph& graph, const Cluster& cluster, const std::vector<PathTerm>& terms,
                     double step_s) {
  TimeParts parts;
  PartsOfWorks works(graph, cluster);
  const std::vector<double> seconds = term_seconds(graph, cluster, terms);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const PathTerm& term = terms[i];
    if (term.kind == PathTerm::Kind::host)
      parts[TimePart::host] += term.count * seconds[i];
    else if (term.kind == PathTerm::Kind::beside || term.kind == PathTerm::Kind::outlasted)
      parts[TimePart::beside] += term.count * seconds[i];
    else if (term.communicator != none)
      parts[part_of(graph.communicators[term.communicator].axis)] += term.count * seconds[i];
    else if (is_bubble_work(graph, term.work))
      parts[TimePart::bubble_work] += term.count * seconds[i];
    else
      add(parts, works.of(term.work, term.group), term.count);
  }
  scale(parts, 1.0 / graph.window);
  const double rest = step_s - parts.sum();
  constexpr double rounding = 1e-9;
  if (is_degraded(cluster) && std::abs(rest) > rounding * step_s) parts[TimePart::slow_gpus] += rest;
  return parts;
}

TimeParts rank_parts(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                     const Timeline& timeline, const PeriodicTimeline* periodic) {
  TimeParts parts;
  const double step_s = step_time_of(graph, timeline, periodic);
  PartsOfWorks works(graph, cluster);
  const std::size_t step = measured_step(timeline), count = graph.tasks.size();
  double ranks = 0;
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = graph.compute_order[rank];
    if (list.empty()) continue;
    ++ranks;
    const int group = place_of(cluster, static_cast<int>(rank)).group;
    const double slowdown = slowdown_of(cluster, static_cast<int>(rank));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const TaskId task = list[i];
      double times = 1;
      if (periodic != nullptr) {
        const PeriodicTimeline::Stretch& period = periodic->steps[step].compute[rank];
        if (i >= period.first && i < period.last) times += periodic->left_out;
      }
      if (is_bubble_work(graph, graph.tasks[task].work)) {
        parts[TimePart::bubble_work] += timeline.end[step * count + task] - timeline.start[step * count + task];
        continue;
      }
      const TimeParts& own = works.of(graph.tasks[task].work, group);
      const double alone = own.sum(), lasted = timeline.end[step * count + task] - timeline.start[step * count + task];
      // Without hosts, a task that lasts longer shares its cores with other ranks.
      const bool shares = durations.host.empty() && durations[task] > 0;
      const double stretch = shares ? lasted / durations[task] : 1;
      add(parts, own, times * stretch);
      parts[TimePart::slow_gpus] += times * stretch * alone * (slowdown - 1);
      parts[TimePart::beside] += times * stretch * (durations[task] - alone * slowdown);
      if (!shares) parts[TimePart::host] += times * (lasted - durations[task]);  // its last kernels are launched late
    }
  }
  for (const RankShares& shares : shares_of_ranks(graph, timeline, periodic)) {
    for (std::size_t axis = 0; axis < message_axes; ++axis)
      parts[part_of(static_cast<Axis>(axis))] += shares.by_axis[axis];
    parts[TimePart::host] += shares.late;
  }
  scale(parts, 1 / ranks / graph.window);
  parts[TimePart::bubble] = step_s - parts.sum();
  constexpr double rounding = 1e-9;
  for (double& seconds : parts.seconds)
    if (std::abs(seconds) < rounding * step_s) seconds = 0;
  return parts;
}

}  // namespace slipway::schedules
