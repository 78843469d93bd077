#include "schedules/time/accounting.h"

#include <algorithm>

#include "schedules/graph/parallel.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/time/metrics.h"

namespace slipway::schedules {

Interval measured_interval(const TaskGraph& graph, const Timeline& timeline, TaskId first) {
  if (timeline.steps < 2) return {0, timeline.makespan_s};
  const std::size_t at = measured_step(timeline) * graph.tasks.size() + first;
  return {timeline.start[at], timeline.start[at + graph.tasks.size()]};
}

namespace {

struct Message {
  double begin, end;
  Axis axis;
};

// Length of [gap] covered by the union of `messages`. Adds `times` that to the axes; of two at once, the first counts.
double covered(const Interval& gap, std::vector<Message>& messages, double times, ByAxis& by_axis) {
  std::sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) { return a.begin < b.begin; });
  double length = 0, reached = gap.begin;
  for (const Message& message : messages) {
    const double begin = std::max(reached, message.begin), end = std::min(gap.end, message.end);
    if (end > begin) {
      length += end - begin;
      by_axis[static_cast<std::size_t>(message.axis)] += times * (end - begin);
    }
    reached = std::max(reached, end);
  }
  return length;
}

// Look-up tables for all ranks' accounts.
struct Index {
  Rows carried;                       // per task: the tasks of the step before that it waits for
  std::vector<std::uint32_t> number;  // per task: its number among the communications
  std::uint32_t communications = 0;
};

Index index_of(const TaskGraph& graph) {
  Index index;
  index.carried.begin.assign(graph.tasks.size() + 1, 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto& [before, after] : graph.carried) pairs.emplace_back(after, before);
  index.carried = with_added(index.carried, pairs);
  index.number.resize(graph.tasks.size());
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.tasks[id].communicator != none) index.number[id] = index.communications++;
  return index;
}

class Accounting {
 public:
  Accounting(const TaskGraph& graph, const Index& index, const Timeline& timeline, const PeriodicTimeline* periodic)
      : graph_(graph),
        index_(index),
        timeline_(timeline),
        periodic_(periodic),
        count_(graph.tasks.size()),
        inputs_(timeline.steps) {}

  // Accounts ranks [first, last) together, task after task. Neighbours mostly run their i-th task at the same time, and
  // their dates are adjacent in memory.
  void ranks(std::size_t first, std::size_t last, std::vector<RankShares>& shares) {
    std::vector<Walk> walks;
    std::size_t most = 0;
    for (std::size_t rank = first; rank < last; ++rank) {
      walks.push_back(begun(rank, shares[rank]));
      most = std::max(most, walks.back().list.size());
    }
    for (std::size_t i = 0; i < most; ++i)
      for (Walk& walk : walks)
        if (i < walk.list.size()) account(walk, i, shares[walk.rank]);
    if (timeline_.steps < 2) return;
    for (const Walk& walk : walks)
      if (!walk.list.empty()) add_gap({walk.free, walk.end}, walk.step + 1, walk.list.front(), 1, shares[walk.rank]);
  }

 private:
  struct Walk {
    std::size_t rank, step;
    std::span<const TaskId> list;
    double free, end;  // of the tasks accounted for; of the measured interval
  };

  Walk begun(std::size_t rank, RankShares& shares) const {
    const auto list = graph_.compute_order[rank];
    if (list.empty()) return {rank, 0, list, 0, 0};
    const auto [begin, end] = measured_interval(graph_, timeline_, list.front());
    shares.window = end - begin + left_out_s(periodic_);
    return {rank, measured_step(timeline_), list, begin, end};
  }

  void account(Walk& walk, std::size_t i, RankShares& shares) {
    const TaskId task = walk.list[i];
    const double times = times_in_truth(walk.step, walk.rank, i);
    add_gap({walk.free, start(walk.step, task)}, walk.step, task, times, shares);
    walk.free = end(walk.step, task);
    shares.compute += times * (walk.free - start(walk.step, task));
  }

  // The number of tasks of the whole step that the rank's i-th task of this one stands for.
  double times_in_truth(std::size_t step, std::size_t rank, std::size_t i) const {
    if (periodic_ == nullptr) return 1;
    const PeriodicTimeline::Stretch& period = periodic_->steps[step].compute[rank];
    return i >= period.first && i < period.last ? 1 + periodic_->left_out : 1;
  }

  double start(std::size_t step, TaskId task) const { return timeline_.start[step * count_ + task]; }
  double end(std::size_t step, TaskId task) const { return timeline_.end[step * count_ + task]; }

  // The inputs that a communication waited for in a step, computed once for all its members.
  struct Inputs {
    double ready = unknown;          // when all of them existed
    bool has_communication = false;  // one of them is a communication
  };
  static constexpr double unknown = -1;
  const Inputs& inputs_of(std::size_t step, TaskId communication) {
    auto& of_step = inputs_[step];
    if (of_step.empty()) of_step.resize(index_.communications);
    Inputs& inputs = of_step[index_.number[communication]];
    if (inputs.ready != unknown) return inputs;
    inputs.ready = 0;
    for (const TaskId before : graph_.predecessors[communication]) {
      inputs.ready = std::max(inputs.ready, end(step, before));
      inputs.has_communication |= graph_.tasks[before].communicator != none;
    }
    return inputs;
  }

  // A communication is queued from the moment its inputs exist. What it waited for through communications alone counts
  // too: a chain such as norm_grad → ar_grad → optimizer counts from its first link. Links that ended before the gap
  // began, and so all before them, cover nothing of it.
  void add_link(const Interval& gap, std::size_t step, TaskId before) {
    if (graph_.tasks[before].communicator == none || end(step, before) <= gap.begin) return;
    const Inputs& inputs = inputs_of(step, before);
    messages_.push_back(
        {std::min(start(step, before), inputs.ready), end(step, before), graph_.communicator(before).axis});
    if (!inputs.has_communication || inputs.ready <= gap.begin) return;
    for (const TaskId earlier : graph_.predecessors[before]) add_link(gap, step, earlier);
  }

  // When its lane is free and its inputs are there, only the host can delay a task.
  void add_gap(const Interval& gap, std::size_t step, TaskId next, double times, RankShares& shares) {
    if (gap.end <= gap.begin) return;
    messages_.clear();
    double ready = gap.begin;
    const auto look = [&](std::size_t in, TaskId before) {
      ready = std::max(ready, end(in, before));
      add_link(gap, in, before);
    };
    for (const TaskId before : graph_.predecessors[next]) look(step, before);
    if (step > 0)
      for (const TaskId before : index_.carried[next]) look(step - 1, before);
    shares.exposed += times * covered(gap, messages_, times, shares.by_axis);
    shares.late += times * std::max(0.0, gap.end - ready);
  }

  const TaskGraph& graph_;
  const Index& index_;
  const Timeline& timeline_;
  const PeriodicTimeline* periodic_;
  std::size_t count_;
  std::vector<std::vector<Inputs>> inputs_;  // [step][communication]
  std::vector<Message> messages_;            // of the gap at hand
};

}  // namespace

std::vector<RankShares> shares_of_ranks(const TaskGraph& graph, const Timeline& timeline,
                                        const PeriodicTimeline* periodic) {
  std::vector<RankShares> shares(graph.compute_order.size());
  const Index index = index_of(graph);
  constexpr std::size_t together = 16;  // two cache lines of dates
  parts_in_parallel(shares.size(), graph.tasks.size(), [&](std::size_t first, std::size_t last) {
    Accounting accounting(graph, index, timeline, periodic);
    for (std::size_t rank = first; rank < last; rank += together)
      accounting.ranks(rank, std::min(rank + together, last), shares);
  });
  return shares;
}

}  // namespace slipway::schedules
