#include "scenarios/explain/moved_step.h"

#include <algorithm>
#include <cmath>

#include "schedules/time/critical_path.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {

Durations durations_of(const TaskGraph& graph, const Moved& moved) {
  const Cluster& cluster = moved.cluster;
  Durations durations = schedules::durations_of(graph, cluster);
  durations.host = host_issue_of(graph, cluster);
  const bool stretches = std::any_of(moved.stretch.begin(), moved.stretch.end(), [](double by) { return by != 1; });
  if (!stretches && moved.stage_stretch.empty()) return durations;
  // Seconds more of each work on each group's machine.
  constexpr double unknown = -1e300;
  std::vector<double> more(graph.works.size() * cluster.groups.size(), unknown), all(more.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (task.communicator != none) continue;
    const auto group = static_cast<std::size_t>(place_of(cluster, task.rank).group);
    const std::size_t at = static_cast<std::size_t>(task.work) * cluster.groups.size() + group;
    if (more[at] == unknown) {
      const ComputeParts parts = compute_parts(graph, graph.works[task.work], cluster.groups[group].machine);
      more[at] = 0, all[at] = parts.once.sum() + parts.again.sum();
      for (std::size_t k = 0; k < time_part_count; ++k)
        more[at] += (moved.stretch[k] - 1) * (parts.once.seconds[k] + parts.again.seconds[k]);
    }
    const double slowdown = slowdown_of(cluster, task.rank);
    durations[id] += more[at] * slowdown;
    if (moved.stage_stretch.empty()) continue;
    const auto stage = static_cast<std::size_t>(coordinates_of(graph.step.layout, task.rank).pipeline);
    durations[id] += (moved.stage_stretch[stage] - 1) * (all[at] + more[at]) * slowdown;
  }
  return durations;
}

namespace {

constexpr int steps = 3;  // the period between the last two is that of a step (schedules/time/metrics.h)

// Unset where the dates of a periodic step do not repeat.
struct Replayed {
  Timeline timeline;
  std::optional<PeriodicTimeline> periodic;
  const PeriodicTimeline* pointer() const { return periodic ? &*periodic : nullptr; }
};

std::optional<Replayed> replayed(const PreparedStep& prepared, const Durations& durations) {
  Replayed result{replay(prepared.graph, durations, steps), {}};
  if (!prepared.periodic) return result;
  result.periodic = periodic_timeline(prepared.graph, durations, *prepared.periodic, result.timeline);
  if (!result.periodic) return std::nullopt;
  return result;
}

PreparedStep with_patience(const Scenario& scenario, int patience) {
  return prepared_unchecked(scenario, {.representatives_only = true, .patience = patience});
}

int patience_of(std::size_t attempt) { return static_cast<int>(std::pow(3, attempt)); }

}  // namespace

MovedStep::MovedStep(const Scenario& scenario) {
  for (;;) {
    prepared_ = {with_patience(scenario, patience_of(prepared_.size()))};
    const PreparedStep& step = prepared_.front();
    const auto result = replayed(step, step.durations);
    if (!result) {
      prepared_.emplace_back();  // counts the attempts
      continue;
    }
    const Cluster& cluster = step.scenario.cluster;
    seconds_ = step_time_of(step.graph, result->timeline, result->pointer());
    const std::vector<PathTerm> terms =
        critical_path(step.graph, cluster, step.durations, result->timeline, result->pointer());
    path_ = path_parts(step.graph, cluster, terms, seconds_);
    ranks_ = rank_parts(step.graph, cluster, step.durations, result->timeline, result->pointer());
    return;
  }
}

double MovedStep::seconds(const Moved& moved) {
  for (std::size_t attempt = 0;; ++attempt) {
    if (attempt == prepared_.size())
      prepared_.push_back(with_patience(prepared_.front().scenario, 10 * patience_of(attempt)));
    const PreparedStep& step = prepared_[attempt];
    if (const auto result = replayed(step, durations_of(step.graph, moved)))
      return step_time_of(step.graph, result->timeline, result->pointer());
  }
}

std::optional<double> MovedStep::solve(const std::function<Moved(double speed)>& moved, double target_s) {
  constexpr double far = 100, close = 1e-4;
  // By the logarithm of the speed, where seconds fall.
  const bool faster = target_s < seconds_;
  double near = 0, end = faster ? std::log(far) : -std::log(far);
  double at_near = std::log(seconds_ / target_s), at_end = std::log(seconds(moved(std::exp(end))) / target_s);
  if (at_near == 0) return 1;
  if (at_near * at_end > 0) return std::nullopt;
  constexpr int most = 40;
  for (int i = 0; i < most; ++i) {
    // Seconds are about constant + work / speed, so bisection of the logarithm is not far behind any other way.
    const double straight = near + (end - near) * at_near / (at_near - at_end);
    const double middle = i % 2 == 0 ? straight : (near + end) / 2;
    const double at = std::log(seconds(moved(std::exp(middle))) / target_s);
    if (std::abs(at) < close) return std::exp(middle);
    (at * at_near > 0 ? near : end) = middle;
    (at * at_near > 0 ? at_near : at_end) = at;
  }
  return std::exp((near + end) / 2);
}

std::optional<double> MovedStep::speed_for(const Rate& rate, double target_s) {
  return solve(
      [&](double speed) {
        Moved moved(scenario().cluster);
        rate.move(moved, speed);
        return moved;
      },
      target_s);
}

std::optional<double> MovedStep::speed_of_stage_for(int pipeline_rank, double target_s) {
  return solve(
      [&](double speed) {
        Moved moved(scenario().cluster);
        moved.stage_stretch.assign(static_cast<std::size_t>(scenario().step.layout.pipeline), 1);
        moved.stage_stretch[static_cast<std::size_t>(pipeline_rank)] = 1 / speed;
        return moved;
      },
      target_s);
}

}  // namespace slipway::scenarios
