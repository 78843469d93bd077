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

void add(TimeParts& parts, const TimeParts& more, double times) {
  for (std::size_t i = 0; i < time_part_count; ++i) parts.seconds[i] += times * more.seconds[i];
}

// Recomputation is shown as one part.
TimeParts shown(const WorkPrice& parts) {
  TimeParts all = parts.once;
  all[TimePart::recompute] += parts.again.sum();
  return all;
}

bool is_bubble_work(const TaskGraph& graph, std::int32_t work) {
  return graph.works[work].kind == WorkKind::bubble_work;
}

// The parts of each work on each group's machine, computed when asked for.
class PartsOfWorks {
 public:
  PartsOfWorks(const TaskGraph& graph, const PricedCluster& cluster)
      : graph_(graph), cluster_(cluster), known_(graph.works.size() * cluster.groups.size()) {}
  const TimeParts& of(std::int32_t work, int group) {
    auto& known = known_[static_cast<std::size_t>(work) * cluster_.groups.size() + static_cast<std::size_t>(group)];
    if (!known) known = shown(price_of(graph_, graph_.works[work], cluster_.groups[group].machine));
    return *known;
  }

 private:
  const TaskGraph& graph_;
  const PricedCluster& cluster_;
  std::vector<std::optional<TimeParts>> known_;
};

}  // namespace

TimeParts path_parts(const TaskGraph& graph, const PricedCluster& cluster, const std::vector<PathTerm>& terms,
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
  parts *= 1.0 / graph.window;
  const double rest = step_s - parts.sum();
  constexpr double rounding = 1e-9;
  if (is_degraded(cluster) && std::abs(rest) > rounding * step_s) parts[TimePart::slow_gpus] += rest;
  return parts;
}

TimeParts rank_parts(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
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
  parts *= 1 / ranks / graph.window;
  parts[TimePart::bubble] = step_s - parts.sum();
  constexpr double rounding = 1e-9;
  for (double& seconds : parts.seconds)
    if (std::abs(seconds) < rounding * step_s) seconds = 0;
  return parts;
}

}  // namespace slipway::schedules
