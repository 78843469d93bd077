// I10 to I12, for filled bubbles (fill.h).
#include <algorithm>
#include <array>
#include <span>

#include "schedules/check/findings.h"
#include "schedules/fill/fill.h"
#include "schedules/time/durations.h"

namespace slipway::schedules {
namespace {

bool same_task(const Task& a, const Task& b) {
  return a.kind == b.kind && a.rank == b.rank && a.micro_batch == b.micro_batch && a.slice == b.slice;
}

// The window is `window` copies of the step and then the items. A lane lists each of its tasks once, those of the step
// in the step's order.
std::vector<Violation> check_complete(const TaskGraph& step, const BubbleWork& bubble_work, const TaskGraph& graph) {
  Findings findings(10);
  const std::size_t own = step.tasks.size() * graph.window;
  if (graph.tasks.size() != own + bubble_work.items.size()) {
    findings.add({}, "the window has " + std::to_string(graph.tasks.size()) + " tasks instead of " +
                         std::to_string(graph.window) + " times " + std::to_string(step.tasks.size()) + " and " +
                         std::to_string(bubble_work.items.size()) + " items of bubble work");
    return findings.take();
  }
  std::vector<int> times(graph.tasks.size(), 0);
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    const auto list = step.compute_order[rank];
    std::size_t next = 0;
    for (const TaskId id : graph.compute_order[rank]) {
      ++times[id];
      if (id >= own) continue;
      const TaskId expected = list[next % list.size()] + static_cast<TaskId>(next / list.size() * step.tasks.size());
      if (id != expected)
        findings.add({id, expected},
                     spoken(graph, id) + " stands in the window where the step has " + label_of(graph, expected));
      ++next;
    }
  }
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const int wanted = graph.tasks[id].communicator == none ? 1 : 0;
    if (times[id] != wanted)
      findings.add({id}, spoken(graph, id) + " is " + std::to_string(times[id]) + " times in a compute lane");
    const Task& meant = id < own ? step.tasks[id % step.tasks.size()] : bubble_work.items[id - own].task;
    if (!same_task(graph.tasks[id], meant)) findings.add({id}, spoken(graph, id) + " is not what was to be placed");
  }
  return findings.take();
}

class DependencyCheck {
 public:
  DependencyCheck(const TaskGraph& step, const BubbleWork& bubble_work, const TaskGraph& graph)
      : bubble_work_(bubble_work),
        graph_(graph),
        first_(step.tasks.size() * graph.window),
        position_(graph.tasks.size(), 0),
        members_(bubble_work.groups) {
    for (std::size_t i = 0; i < graph.compute_order.values.size(); ++i) position_[graph.compute_order.values[i]] = i;
    for (std::size_t i = 0; i < bubble_work.items.size(); ++i)
      members_[bubble_work.items[i].group].push_back(static_cast<TaskId>(first_ + i));
  }

  std::vector<Violation> run() {
    Findings findings(11);
    for (std::size_t i = 0; i < bubble_work_.items.size() && !findings.full(); ++i) {
      const auto id = static_cast<TaskId>(first_ + i);
      const auto require = [&](TaskId before) {
        if (is_over(before, id)) return;
        findings.add({before, id},
                     spoken(graph_, id) + " does not wait for " + spoken(graph_, before) + ", which it needs");
      };
      for (const TaskId before : bubble_work_.items[i].after) require(before);
      for (const BubbleGroup group : bubble_work_.items[i].after_groups)
        for (const TaskId before : members_[group]) require(before);
    }
    return findings.take();
  }

 private:
  bool earlier_on_lane(TaskId before, TaskId after) const {
    const Task &a = graph_.tasks[before], &b = graph_.tasks[after];
    return a.communicator == none && b.communicator == none && a.rank == b.rank && position_[before] < position_[after];
  }
  // True directly, by the lane, or by a later task of the same lane that is waited for directly.
  bool is_over(TaskId before, TaskId after) const {
    if (earlier_on_lane(before, after)) return true;
    const auto direct = graph_.predecessors[after];
    return std::any_of(direct.begin(), direct.end(),
                       [&](TaskId each) { return each == before || earlier_on_lane(before, each); });
  }

  const BubbleWork& bubble_work_;
  const TaskGraph& graph_;
  std::size_t first_;
  std::vector<std::size_t> position_;
  std::vector<std::vector<TaskId>> members_;  // per group
};

// By how much the work behind the window delays the next one: the longest way through the lanes of that work and of its
// messages, from where the unfilled steps end, which differs from rank to rank. Whatever starts late by so much shifts all
// that follows by no more.
class DelayBehind {
 public:
  DelayBehind(const TaskGraph& step, const Filling& filling)
      : graph_(filling.graph),
        durations_(filling.durations),
        unfilled_(periodic_step(step, filling.durations)),
        in_step_(step.tasks.size()),
        own_(step.tasks.size() * graph_.window),
        end_(graph_.tasks.size(), 0),
        before_(graph_.tasks.size(), none_before) {}

  double seconds() {
    plan();
    std::vector<double> free(graph_.communicators.size(), 0);  // when its last message is over
    for (const TaskId id : graph_.order) {
      const auto communicator = graph_.tasks[id].communicator;
      const bool message = id >= own_ && communicator != none;
      if (!message && before_[id] == none_before) continue;
      double start = message ? free[communicator] : end_[before_[id]];
      for (const TaskId each : graph_.predecessors[id]) start = std::max(start, end_[each]);
      end_[id] = start + durations_[id];
      if (message) free[communicator] = end_[id];
    }
    double delay = 0;
    for (const auto& lane : lanes())
      delay = std::max(delay, end_[lane.back()] - start_of(lane.front()) - unfilled_.period_s * graph_.window);
    return delay;
  }

 private:
  static constexpr TaskId none_before = static_cast<TaskId>(-1);

  std::vector<std::span<const TaskId>> lanes() const {
    std::vector<std::span<const TaskId>> found;
    for (std::size_t rank = 0; rank < graph_.compute_order.size(); ++rank)
      if (const auto lane = graph_.compute_order[rank]; !lane.empty() && lane.front() < own_) found.push_back(lane);
    return found;
  }

  double end_of(TaskId id) const {
    return unfilled_.end[id % in_step_] + static_cast<double>(id / in_step_) * unfilled_.period_s;
  }
  double start_of(TaskId id) const { return end_of(id) - durations_[id]; }

  // Ends of the steps' tasks, as unfilled, and of items between them, which end before the next such task of their lane.
  void plan() {
    for (TaskId id = 0; id < own_; ++id) end_[id] = end_of(id);
    for (const auto& lane : lanes()) {
      double next = 0;
      bool behind = true;
      for (std::size_t i = lane.size(); i-- > 0;) {
        if (lane[i] < own_)
          behind = false, next = start_of(lane[i]);
        else if (behind)
          before_[lane[i]] = lane[i - 1];
        else
          end_[lane[i]] = next;
      }
    }
  }

  const TaskGraph& graph_;
  const Durations& durations_;
  PeriodicStep unfilled_;
  std::size_t in_step_, own_;
  std::vector<double> end_;     // per task
  std::vector<TaskId> before_;  // per task behind the window: the one before it on its lane
};

std::vector<Violation> check_not_delayed(const TaskGraph& step, const Filling& filling) {
  constexpr double rounding = 1e-8;  // for a window of thousands of steps
  Findings findings(12);
  const double window = periodic_step(filling.graph, filling.durations).period_s;
  const double allowed = filling.period_s * filling.graph.window + DelayBehind(step, filling).seconds();
  if (window > allowed * (1 + rounding))
    findings.add({}, "a window of " + std::to_string(filling.graph.window) + " filled steps takes " +
                         std::to_string(window) + " s, more than unfilled and what runs behind it, " +
                         std::to_string(allowed) + " s");
  return findings.take();
}

}  // namespace

std::vector<Violation> check_filling(const TaskGraph& step, const BubbleWork& bubble_work, const Filling& filling) {
  std::vector<Violation> all = check_complete(step, bubble_work, filling.graph);
  if (!all.empty()) return all;  // the other checks require this one
  for (std::vector<Violation>& more :
       std::array{DependencyCheck(step, bubble_work, filling.graph).run(), check_not_delayed(step, filling)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace slipway::schedules
