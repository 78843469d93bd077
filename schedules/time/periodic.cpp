#include "schedules/time/periodic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedules/time/durations.h"
#include "schedules/time/host_issue.h"

namespace slipway::schedules {

namespace {

using List = std::vector<Action>;

// Actions [first, last) of a list repeat: each but those of the last period is followed, `length` later, by the same
// action of `period` micro-batches later.
struct Region {
  std::size_t first = 0, last = 0, length = 1;
  int periods() const { return static_cast<int>((last - first) / length); }
};

Action later(Action action, int micro_batches) {
  action.micro_batch += micro_batches;
  return action;
}

std::optional<Region> region_of(const List& list, int micro_batches, int period) {
  const std::size_t middle = list.size() / 2;
  const auto from = list.begin() + static_cast<std::ptrdiff_t>(middle);
  const auto length = static_cast<std::size_t>(std::find(from, list.end(), later(*from, period)) - from);
  const auto repeats = [&](std::size_t at) {
    return list[at].micro_batch > 0 && list[at].micro_batch + period + 1 < micro_batches &&
           list[at + length] == later(list[at], period);
  };
  Region region{middle, middle, length};
  while (region.last + length < list.size() && repeats(region.last)) ++region.last;
  while (region.first > 0 && repeats(region.first - 1)) --region.first;
  if (region.last - region.first < length) return std::nullopt;
  region.last += length;
  return region;
}

std::vector<Region> regions_of(const ActionLists& lists, int micro_batches, int period) {
  std::vector<Region> regions;
  for (const List& list : lists) {
    const std::optional<Region> region = list.empty() ? std::nullopt : region_of(list, micro_batches, period);
    if (!region) return {};
    regions.push_back(*region);
  }
  return regions;
}

PeriodicActions without(const ActionLists& lists, const std::vector<Region>& regions, int micro_batches, int period,
                        int left_out) {
  PeriodicActions result{{}, micro_batches - left_out * period, period, left_out};
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    const auto first = lists[rank].begin() + static_cast<std::ptrdiff_t>(regions[rank].first);
    List& list = result.actions.emplace_back(lists[rank].begin(), first);
    for (auto at = first + static_cast<std::ptrdiff_t>(regions[rank].length) * left_out; at != lists[rank].end();
         ++at) {
      list.push_back(*at);
      list.back().micro_batch -= left_out * period;
    }
  }
  return result;
}

constexpr double periods_compared = 3;  // two would do: state repeats when what made it does
constexpr double same_share = 1e-9;     // of a period: dates are sums of thousands of durations

// Tasks [first, last) of a lane have a twin `distance` later: the same work, one period of micro-batches later.
struct Repeating {
  const std::vector<TaskId>* tasks = nullptr;
  std::size_t first = 0, last = 0, distance = 0;
  TaskId twin(std::size_t at) const { return (*tasks)[at + distance]; }
};

bool are_twins(const TaskGraph& graph, TaskId a, TaskId b, int period) {
  const Task &x = graph.tasks[a], &y = graph.tasks[b];
  return x.micro_batch != none && x.work == y.work && x.slice == y.slice && x.micro_batch + period == y.micro_batch;
}

// Returns nothing for a lane without micro-batches, an empty run where none repeats.
std::optional<Repeating> repeating_part(const TaskGraph& graph, const std::vector<TaskId>& tasks, int period) {
  const auto runs = [&](TaskId id) { return graph.tasks[id].micro_batch != none; };
  if (std::none_of(tasks.begin(), tasks.end(), runs)) return std::nullopt;
  Repeating part{&tasks};
  for (std::size_t anchor = tasks.size() / 2; anchor > 0; anchor /= 2) {
    for (std::size_t at = anchor + 1; at < tasks.size() && part.distance == 0; ++at)
      if (are_twins(graph, tasks[anchor], tasks[at], period)) part.distance = at - anchor;
    if (part.distance == 0) continue;
    const auto repeats = [&](std::size_t at) { return are_twins(graph, tasks[at], part.twin(at), period); };
    part.first = part.last = anchor;
    while (part.last + part.distance < tasks.size() && repeats(part.last)) ++part.last;
    while (part.first > 0 && repeats(part.first - 1)) --part.first;
    return part;
  }
  return part;
}

class Comparison {
 public:
  Comparison(const TaskGraph& graph, const HostIssue& host, const std::vector<Lane>& lanes, int period)
      : graph_(graph), host_(host) {
    std::vector<bool> seen(graph.communicators.size());
    for (const Lane& lane : lanes) {
      if (lane.communicator != none) {  // the lanes of its members hold the same tasks
        const auto c = static_cast<std::size_t>(lane.communicator);
        if (seen[c]) continue;
        seen[c] = true;
      }
      const auto part = repeating_part(graph, lane.tasks, period);
      if (!part) continue;
      complete_ &= part->last > part->first;
      parts_.push_back(*part);
      ranks_.push_back(lane.communicator == none ? lane.rank : none);
    }
  }

  // One step of a timeline. Sets period_s, or compares with it if it is set.
  std::optional<PeriodicTimeline::Step> step(const Timeline& timeline, int step, double& period_s) const {
    if (!complete_ || parts_.empty()) return std::nullopt;
    const std::size_t base = static_cast<std::size_t>(step) * graph_.tasks.size();
    const double* start = timeline.start.data() + base;
    const double* end = timeline.end.data() + base;
    PeriodicTimeline::Step result;
    result.until_s = std::numeric_limits<double>::infinity();
    double here_s = 0;
    for (const Repeating& part : parts_) {
      const double last = start[part.twin(part.last - 1)];
      if (last >= result.until_s) continue;
      result.until_s = last;
      here_s = last - start[(*part.tasks)[part.last - 1]];
    }
    if (period_s == 0) period_s = here_s;
    if (!(period_s > 0) || std::abs(here_s - period_s) > same_share * period_s) return std::nullopt;
    if (longest_issue() > (1 + same_share) * period_s) return std::nullopt;
    result.compute.resize(graph_.compute_order.size());
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (!repeats(parts_[i], start, end, period_s, ranks_[i], result)) return std::nullopt;
    return result;
  }

 private:
  bool repeats(const Repeating& part, const double* start, const double* end, double period_s, std::int32_t rank,
               PeriodicTimeline::Step& result) const {
    const double from = result.until_s - periods_compared * period_s;
    const auto as_long_after = [&](const double* date, std::size_t at) {
      return std::abs(date[part.twin(at)] - date[(*part.tasks)[at]] - period_s) <= same_share * period_s;
    };
    bool last_one = true;
    for (std::size_t at = part.last; at-- > part.first;) {
      if (start[part.twin(at)] > result.until_s) continue;
      if (rank != none && last_one) {
        const auto past = static_cast<std::uint32_t>(at + part.distance + 1);
        result.compute[rank] = {past - static_cast<std::uint32_t>(part.distance), past};
      }
      last_one = false;
      if (start[part.twin(at)] < from) return true;
      if (!as_long_after(start, at) || !as_long_after(end, at)) return false;
    }
    return false;  // it began to repeat too late to be compared
  }

  // Seconds that the slowest host takes to issue a period. One that takes longer than the device has a lead only until
  // that is used up; then it makes the period longer.
  double longest_issue() const {
    double longest = 0;
    if (host_.empty()) return 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (ranks_[i] == none) continue;
      const TaskId last = (*parts_[i].tasks)[parts_[i].last - 1], twin = parts_[i].twin(parts_[i].last - 1);
      longest = std::max(longest, host_.of(twin).front().before - host_.of(last).front().before);
    }
    return longest;
  }

  const TaskGraph& graph_;
  const HostIssue& host_;
  std::vector<Repeating> parts_;
  std::vector<std::int32_t> ranks_;  // per part: the rank of a compute lane, or none
  bool complete_ = true;
};

// Returns a state only if all steps repeat every `period` micro-batches.
std::optional<PeriodicTimeline> repeating(const TaskGraph& graph, const HostIssue& host, const std::vector<Lane>& lanes,
                                          int period, const Timeline& timeline) {
  const Comparison comparison(graph, host, lanes, period);
  PeriodicTimeline state;
  state.micro_batches = period;
  for (int step = 0; step < timeline.steps; ++step) {
    auto found = comparison.step(timeline, step, state.period_s);
    if (!found) return std::nullopt;
    state.steps.push_back(std::move(*found));
  }
  return state;
}

}  // namespace

std::optional<PeriodicActions> periodic_actions(const ActionLists& lists, int micro_batches, int patience) {
  const int longest = 2 * static_cast<int>(lists.size());  // longest period that is searched
  for (int period = 1; period <= longest && 3 * period < micro_batches; ++period) {
    const std::vector<Region> regions = regions_of(lists, micro_batches, period);
    if (regions.empty()) continue;
    const int fewest = std::min_element(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
                         return a.periods() < b.periods();
                       })->periods();
    const int keep = patience * (6 + (longest + period - 1) / period);
    const int left_out = (fewest - keep) / period_multiple * period_multiple;
    if (left_out <= 0 || 3 * left_out * period < micro_batches) return std::nullopt;
    return without(lists, regions, micro_batches, period, left_out);
  }
  return std::nullopt;
}

std::optional<PeriodicTimeline> periodic_timeline(const TaskGraph& graph, const Durations& durations,
                                                  const PeriodicActions& actions, const Timeline& timeline) {
  const std::vector<Lane> lanes = lanes_of(graph);
  const auto in_some_period = [&](const Timeline& of) {
    std::optional<PeriodicTimeline> state;
    for (int times = 1; times <= 4 && !state; ++times) {
      state = repeating(graph, durations.host, lanes, times * actions.period, of);
      if (state) state->left_out = actions.left_out / times;
    }
    return state;
  };
  if (!in_some_period(replay(graph, durations, 1))) return std::nullopt;
  return in_some_period(timeline);
}

}  // namespace slipway::schedules
