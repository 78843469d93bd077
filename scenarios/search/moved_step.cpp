#include "scenarios/search/moved_step.h"

#include <algorithm>
#include <cmath>

#include "scenarios/predict/filling.h"
#include "schedules/time/beside.h"
#include "schedules/time/critical_path.h"
#include "schedules/time/host_issue.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
#include "schedules/time/work_price.h"

namespace slipway::scenarios {

namespace {

void stretch_tasks(const TaskGraph& graph, const Moved& moved, Durations& durations) {
  const PricedCluster& cluster = moved.cluster;
  const bool stretches = std::any_of(moved.stretch.begin(), moved.stretch.end(), [](double by) { return by != 1; });
  if (!stretches && moved.stage_stretch.empty()) return;
  // Seconds more of each work on each group's machine.
  constexpr double unknown = -1e300;
  std::vector<double> more(graph.works.size() * cluster.groups.size(), unknown), all(more.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    if (task.communicator != none) continue;
    const auto group = static_cast<std::size_t>(place_of(cluster, task.rank).group);
    const std::size_t at = static_cast<std::size_t>(task.work) * cluster.groups.size() + group;
    if (more[at] == unknown) {
      const WorkPrice parts = price_of(graph, graph.works[task.work], cluster.groups[group].machine);
      more[at] = 0, all[at] = parts.seconds;
      for (std::size_t k = 0; k < time_part_count; ++k)
        more[at] += (moved.stretch[k] - 1) * (parts.once.seconds[k] + parts.again.seconds[k]);
    }
    const double slowdown = slowdown_of(cluster, task.rank);
    durations[id] += more[at] * slowdown;
    if (moved.stage_stretch.empty()) continue;
    const auto stage = static_cast<std::size_t>(coordinates_of(graph.step.layout, task.rank).pipeline);
    durations[id] += (moved.stage_stretch[stage] - 1) * (all[at] + more[at]) * slowdown;
  }
}

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

int patience_of(std::size_t attempt) { return static_cast<int>(std::pow(3, attempt)); }

Moved with_slow_stage(const MovedStep& step, int pipeline_rank, double speed) {
  Moved moved(step.cluster());
  moved.stage_stretch.assign(static_cast<std::size_t>(step.scenario().step.layout.pipeline), 1);
  moved.stage_stretch[static_cast<std::size_t>(pipeline_rank)] = 1 / speed;
  return moved;
}

}  // namespace

Durations durations_of(const TaskGraph& graph, const Moved& moved) {
  const PricedCluster& cluster = moved.cluster;
  Durations durations = durations_alone(graph, cluster);
  durations.host = host_issue_of(graph, cluster);
  stretch_tasks(graph, moved, durations);
  add_losses_beside(graph, cluster, durations);
  return durations;
}

PreparedStep MovedStep::with_patience(const Scenario& scenario, int patience) {
  PreparedStep step = prepared_unchecked(scenario, {.representatives_only = true, .patience = patience});
  if (!has_bubble_work(scenario)) return step;
  unfilled_ = step;
  fill_bubbles(step);
  return step;
}

Durations MovedStep::durations(const PreparedStep& step, const Moved& moved) const {
  if (!unfilled_) return durations_of(step.graph, moved);
  const Durations own = durations_of(unfilled_->graph, moved);
  Durations window = window_durations(step.scenario, unfilled_->graph, own, moved.cluster, step.graph.window,
                                      moved.stretch[static_cast<std::size_t>(TimePart::bubble_work)]);
  window.host = host_issue_of(step.graph, moved.cluster);
  return window;
}

MovedStep::MovedStep(const Scenario& scenario) {
  for (;;) {
    prepared_ = {with_patience(scenario, patience_of(prepared_.size()))};
    const PreparedStep& step = prepared_.front();
    const auto result = replayed(step, step.durations);
    if (!result) {
      prepared_.emplace_back();  // counts the attempts
      continue;
    }
    const PricedCluster& cluster = step.cluster;
    seconds_ = step_time_of(step.graph, result->timeline, result->pointer());
    const std::vector<PathTerm> terms =
        critical_path(step.graph, cluster, step.durations, result->timeline, result->pointer());
    path_ = path_parts(step.graph, cluster, terms, seconds_);
    ranks_ = rank_parts(step.graph, cluster, step.durations, result->timeline, result->pointer());
    return;
  }
}

double MovedStep::seconds(const Moved& moved) {
  for (std::size_t attempt = first_attempt_;; ++attempt) {
    if (attempt == prepared_.size())
      prepared_.push_back(with_patience(prepared_.front().scenario, 10 * patience_of(attempt)));
    const PreparedStep& step = prepared_[attempt];
    if (const auto result = replayed(step, durations(step, moved))) {
      last_attempt_ = attempt;
      return step_time_of(step.graph, result->timeline, result->pointer());
    }
  }
}

// Seconds are the longest of many paths, each a constant plus work / speed. So they are convex and made of straight parts in
// 1 / speed, where a false position with halved ends (Illinois; Dowell and Jarratt 1971) needs few replays.
std::optional<double> MovedStep::solve(const std::function<Moved(double speed)>& moved, double target_s) {
  constexpr double few_times = 3, far = 100, close = 2e-5;
  constexpr int most = 40;
  if (target_s == seconds_) return 1;
  const bool faster = target_s < seconds_;
  double near = 1, end = faster ? 1 / few_times : few_times;  // 1 / speed
  first_attempt_ = 0;
  double at_near = seconds_ - target_s, at_end = seconds(moved(1 / end)) - target_s;
  if (at_near * at_end > 0) {
    near = end, at_near = at_end;
    end = faster ? 1 / far : far, at_end = seconds(moved(1 / end)) - target_s;
  }
  if (at_near * at_end > 0) return std::nullopt;
  double middle = near;
  int side = 0;  // which end the last replay moved
  for (int i = 0; i < most; ++i) {
    middle = (near * at_end - end * at_near) / (at_end - at_near);
    first_attempt_ = last_attempt_;  // dates that do not repeat at one speed hardly do at the next
    const double at = seconds(moved(1 / middle)) - target_s;
    if (std::abs(at) < close * target_s) break;
    if (at * at_near > 0) {
      near = middle, at_near = at;
      if (side == 1) at_end /= 2;
      side = 1;
    } else {
      end = middle, at_end = at;
      if (side == -1) at_near /= 2;
      side = -1;
    }
  }
  first_attempt_ = 0;
  return 1 / middle;
}

std::optional<double> MovedStep::speed_for(const Rate& rate, double target_s) {
  return solve(
      [&](double speed) {
        Moved moved(cluster());
        rate.move(moved, speed);
        return moved;
      },
      target_s);
}

std::optional<double> MovedStep::speed_of_stage_for(int pipeline_rank, double target_s) {
  return solve([&](double speed) { return with_slow_stage(*this, pipeline_rank, speed); }, target_s);
}

double MovedStep::seconds_with_stage(int pipeline_rank, double speed) {
  return seconds(with_slow_stage(*this, pipeline_rank, speed));
}

}  // namespace slipway::scenarios
