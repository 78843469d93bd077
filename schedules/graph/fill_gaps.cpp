#include "schedules/graph/fill_gaps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slipway {
namespace {

// The first task of every rank that has one.
std::vector<TaskId> first_tasks(const TaskGraph& step) {
  std::vector<TaskId> first;
  for (std::size_t rank = 0; rank < step.compute_order.size(); ++rank)
    if (!step.compute_order[rank].empty()) first.push_back(step.compute_order[rank].front());
  return first;
}

// Pipelines reach their period after a step or two; a long chain of carried gathers may take more.
constexpr int most_warm_steps = 64;
constexpr double same_period = 1e-9;  // relative

}  // namespace

SteadyStep steady_step(const TaskGraph& step, const Durations& durations) {
  const std::size_t count = step.tasks.size();
  const std::vector<TaskId> first = first_tasks(step);
  SteadyStep steady;
  Timeline timeline;
  std::size_t base = 0;
  for (int warm = 2; warm <= most_warm_steps; warm *= 2) {
    timeline = replay(step, durations, warm + 2);
    base = static_cast<std::size_t>(warm) * count;
    double shortest = std::numeric_limits<double>::infinity();
    steady.period_s = 0;
    for (const TaskId task : first) {
      const double period = timeline.start[base + count + task] - timeline.start[base + task];
      shortest = std::min(shortest, period);
      steady.period_s = std::max(steady.period_s, period);
    }
    if (steady.period_s - shortest <= same_period * steady.period_s) break;
  }
  double origin = std::numeric_limits<double>::infinity();
  for (const TaskId task : first) origin = std::min(origin, timeline.start[base + task]);
  for (std::size_t task = 0; task < count; ++task) steady.end.push_back(timeline.end[base + task] - origin);
  for (std::size_t rank = 0; rank < step.compute_order.size(); ++rank) {
    const auto list = step.compute_order[rank];
    std::vector<Gap>& gaps = steady.gaps.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool last = i + 1 == list.size();
      const double next =
          last ? timeline.start[base + list.front()] + steady.period_s : timeline.start[base + list[i + 1]];
      const Gap gap{static_cast<std::uint32_t>(i + 1), steady.end[list[i]], next - origin};
      if (last || gap.end > gap.begin) gaps.push_back(gap);
    }
  }
  return steady;
}

}  // namespace slipway
