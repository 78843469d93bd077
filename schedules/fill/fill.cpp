// Assigns each bubble work to a gap (private to the filling pass); fill.h has the rule.
// Guarded by tests/schedules/fill_test.cpp.
#include "schedules/fill/fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>

#include "schedules/lower/filled_window.h"
#include "schedules/lower/graph_builder.h"
#include "schedules/time/global_order.h"

namespace slipway::schedules {

struct FillPlace {
  int step = 0;             // of the window
  std::uint32_t after = 0;  // tasks of the lane before it, in this step
  double start_s = 0;       // in the unfilled timeline's time, from the window's first task
  bool behind = false;      // found no gap, so it runs behind the whole window
};

struct Assignment {
  std::vector<FillPlace> places;  // per item; step and after are unused for a communication
  int steps = 1;                  // of the window
};

// Throws std::invalid_argument when items wait for each other in a circle.
Assignment assign(const PeriodicStep& periodic, const BubbleWork& bubble_work, const FillOptions& options);

namespace {

void refuse_strangers(const TaskGraph& step, const BubbleWork& bubble_work) {
  const int ranks = rank_count(step.step.layout);
  for (const BubbleTask& item : bubble_work.items) {
    const bool compute = item.task.communicator == none;
    if (compute && (item.task.rank < 0 || item.task.rank >= ranks))
      throw std::invalid_argument("bubble work names rank " + std::to_string(item.task.rank));
    if (!compute && item.task.communicator >= std::ssize(bubble_work.communicators))
      throw std::invalid_argument("bubble work names communicator " + std::to_string(item.task.communicator));
    if (item.group < 0 || item.group >= bubble_work.groups)
      throw std::invalid_argument("bubble work names group " + std::to_string(item.group));
  }
}

// The window graph with the items in it.
class Builder {
 public:
  Builder(const TaskGraph& step, const BubbleWork& bubble_work, const Assignment& assignment)
      : step_(step),
        bubble_work_(bubble_work),
        assignment_(assignment),
        graph_(window_of(step, assignment.steps)),
        first_bubble_task_(graph_.tasks.size()) {}

  TaskGraph run() {
    placed_.works = bubble_work_.works;
    placed_.communicators = bubble_work_.communicators;
    for (std::size_t rank = 0; rank < bubble_work_.static_bytes.size(); ++rank)
      placed_.weights.push_back(graph_.static_bytes[rank].weights + bubble_work_.static_bytes[rank]);
    list_tasks();
    insert_in_lanes();
    depend();
    keep();
    add_bubble_work(graph_, placed_);
    return std::move(graph_);
  }

 private:
  TaskId id_of(int item) const { return static_cast<TaskId>(first_bubble_task_ + item); }
  const FillPlace& place(int item) const { return assignment_.places[item]; }

  void list_tasks() {
    const auto works = static_cast<std::int32_t>(graph_.works.size());
    const auto communicators = static_cast<std::int32_t>(graph_.communicators.size());
    for (const BubbleTask& item : bubble_work_.items) {
      Task task = item.task;
      task.work += works;
      if (task.communicator != none) task.communicator += communicators;
      placed_.tasks.push_back({task, {}, {}});
    }
  }

  // Each rank's lane: the window's own tasks, and behind each of them the bubble work placed there.
  void insert_in_lanes() {
    std::vector<std::vector<int>> of_rank(step_.compute_order.size());
    for (std::size_t i = 0; i < bubble_work_.items.size(); ++i)
      if (bubble_work_.items[i].task.communicator == none)
        of_rank[bubble_work_.items[i].task.rank].push_back(static_cast<int>(i));
    Rows lanes;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      auto& items = of_rank[rank];
      std::sort(items.begin(), items.end(), [&](int a, int b) {
        const FillPlace &x = place(a), &y = place(b);
        return std::tuple(x.step, x.after, x.start_s, a) < std::tuple(y.step, y.after, y.start_s, b);
      });
      const auto own = graph_.compute_order[rank];
      const std::size_t per_step = step_.compute_order[rank].size();
      auto next = items.cbegin();
      for (std::size_t i = 0; i <= own.size(); ++i) {
        for (; next != items.cend() && place(*next).step * per_step + place(*next).after <= i; ++next)
          lanes.values.push_back(id_of(*next));
        if (i < own.size()) lanes.values.push_back(own[i]);
      }
      lanes.begin.push_back(static_cast<std::uint32_t>(lanes.values.size()));
    }
    graph_.compute_order = std::move(lanes);
    position_.assign(first_bubble_task_ + bubble_work_.items.size(), 0);
    for (std::size_t i = 0; i < graph_.compute_order.values.size(); ++i) position_[graph_.compute_order.values[i]] = i;
  }

  // If items of a group share a lane, only the last one is waited for: the others end before it.
  std::vector<std::vector<TaskId>> last_of_groups() const {
    std::vector<std::vector<TaskId>> members(bubble_work_.groups);
    std::vector<std::vector<std::pair<std::int32_t, TaskId>>> last(members.size());
    for (std::size_t i = 0; i < bubble_work_.items.size(); ++i) {
      const BubbleTask& item = bubble_work_.items[i];
      const TaskId id = id_of(static_cast<int>(i));
      auto& lanes = last[item.group];
      const auto known = item.task.communicator != none
                             ? lanes.end()
                             : std::find_if(lanes.begin(), lanes.end(),
                                            [&](const auto& lane) { return lane.first == item.task.rank; });
      if (known == lanes.end())
        lanes.emplace_back(item.task.communicator == none ? item.task.rank : none, id);
      else if (position_[id] > position_[known->second])
        known->second = id;
    }
    for (std::size_t g = 0; g < last.size(); ++g)
      for (const auto& [rank, id] : last[g]) members[g].push_back(id);
    return members;
  }

  void depend() {
    const std::vector<std::vector<TaskId>> groups = last_of_groups();
    for (std::size_t i = 0; i < bubble_work_.items.size(); ++i) {
      std::vector<TaskId>& after = placed_.tasks[i].after;
      after = bubble_work_.items[i].after;
      for (const BubbleGroup group : bubble_work_.items[i].after_groups)
        after.insert(after.end(), groups[group].begin(), groups[group].end());
    }
  }

  TaskId first_of(BubbleGroup group, std::int32_t rank) const {
    TaskId first = none_found;
    for (std::size_t i = 0; i < bubble_work_.items.size(); ++i) {
      const BubbleTask& item = bubble_work_.items[i];
      const TaskId id = id_of(static_cast<int>(i));
      if (item.group != group || item.task.rank != rank) continue;
      if (first == none_found || position_[id] < position_[first]) first = id;
    }
    if (first == none_found) throw std::invalid_argument("a group without an item on the rank makes nothing there");
    return first;
  }

  // Makes a buffer for every tensor that an item makes, or reads after the task that would free it.
  void keep() {
    std::vector<std::vector<int>> readers(bubble_work_.kept.size());
    for (std::size_t i = 0; i < bubble_work_.items.size(); ++i)
      for (const int tensor : bubble_work_.items[i].reads) readers[tensor].push_back(static_cast<int>(i));
    for (std::size_t k = 0; k < readers.size(); ++k) {
      const KeptTensor& tensor = bubble_work_.kept[k];
      const bool made = tensor.from_item != none || tensor.from_group != none;
      const TaskId from = tensor.from_group != none ? first_of(tensor.from_group, tensor.rank)
                          : made                    ? id_of(tensor.from_item)
                                                    : tensor.from;
      if (!made) std::erase_if(readers[k], [&](int reader) { return position_[id_of(reader)] < position_[from]; });
      if (!made && readers[k].empty()) continue;
      const auto buffer = static_cast<BufferId>(graph_.buffers.size() + placed_.buffers.size());
      placed_.buffers.push_back({BufferKind::kept, 0, made ? tensor.rank : graph_.tasks[from].rank, tensor.bytes,
                                 static_cast<std::int32_t>(from)});
      for (const int reader : readers[k]) {
        placed_.tasks[static_cast<std::size_t>(reader)].reads.push_back(buffer);
        placed_.tasks[static_cast<std::size_t>(reader)].after.push_back(from);
      }
    }
  }

  static constexpr TaskId none_found = static_cast<TaskId>(-1);
  const TaskGraph& step_;
  const BubbleWork& bubble_work_;
  const Assignment& assignment_;
  TaskGraph graph_;
  PlacedBubbleWork placed_;
  std::size_t first_bubble_task_;
  std::vector<std::size_t> position_;  // per compute task: in compute_order
};

bool ends_step(const TaskGraph& graph, TaskId task) {
  const WorkKind kind = graph.work(task).kind;
  return kind != WorkKind::segment && kind != WorkKind::bubble_work;
}

std::vector<RankFilling> ranks_of(const TaskGraph& step, const Durations& durations, const BubbleWork& bubble_work,
                                  const Assignment& assignment) {
  std::vector<RankFilling> ranks(step.compute_order.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const TaskId task : step.compute_order[rank])
      (ends_step(step, task) ? ranks[rank].end_s : ranks[rank].pass_s) += durations[task];
  for (std::size_t i = 0; i < bubble_work.items.size(); ++i) {
    const BubbleTask& item = bubble_work.items[i];
    if (item.task.communicator != none) continue;
    RankFilling& rank = ranks[item.task.rank];
    const FillPlace& place = assignment.places[i];
    rank.bubble_work_s += item.seconds;
    if (place.behind) rank.behind_s += item.seconds;
    rank.steps = std::max(rank.steps, place.step + 1);
  }
  return ranks;
}

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

constexpr double never = std::numeric_limits<double>::infinity();
// Items whose dependencies are known to end, by the date of that end, and those whose date has come, in the order of
// choice.
class Queue {
 public:
  explicit Queue(const std::vector<BubbleTask>& items) : ready_(Order{&items}) {}

  void add(int item, double ready_at) { waiting_.emplace(ready_at, item); }
  void advance(double now) {
    for (; !waiting_.empty() && waiting_.top().first <= now; waiting_.pop()) ready_.insert(waiting_.top().second);
  }
  double next_date() const { return waiting_.empty() ? never : waiting_.top().first; }
  // Removes and returns the first that `fits`; −1 when none does.
  template <class Fits>
  int take(const Fits& fits) {
    const auto found = std::find_if(ready_.begin(), ready_.end(), fits);
    if (found == ready_.end()) return -1;
    const int item = *found;
    ready_.erase(found);
    return item;
  }
  bool has_ready() const { return !ready_.empty(); }

 private:
  struct Order {
    const std::vector<BubbleTask>* items;
    bool operator()(int a, int b) const {
      const BubbleTask &x = (*items)[a], &y = (*items)[b];
      return std::tuple(x.priority, -x.seconds, a) < std::tuple(y.priority, -y.seconds, b);
    }
  };
  using Waiting = std::pair<double, int>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::set<int, Order> ready_;
};

// A rank's position in the walk through its gaps.
struct Walk {
  int step = 0;
  std::size_t gap = 0;
  double now = 0;
};

class Assigner {
 public:
  Assigner(const PeriodicStep& periodic, const BubbleWork& bubble_work, const FillOptions& options)
      : periodic_(periodic),
        bubble_work_(bubble_work),
        options_(options),
        walks_(periodic.gaps.size()),
        queues_(periodic.gaps.size(), Queue(bubble_work.items)),
        lane_free_(bubble_work.communicators.size(), 0),
        group_left_(bubble_work.groups),
        group_end_(bubble_work.groups, 0),
        waiters_(bubble_work.groups),
        ready_at_(bubble_work.items.size(), 0),
        missing_(bubble_work.items.size(), 0) {
    result_.places.resize(bubble_work.items.size());
    left_ = bubble_work.items.size();
    for (const BubbleTask& item : bubble_work.items) ++group_left_[item.group];
    for (std::size_t i = 0; i < bubble_work.items.size(); ++i) enter(static_cast<int>(i));
  }

  Assignment run() {
    if (options_.use_bubbles)
      walk_gaps();
    else
      result_.steps = options_.steps;
    run_behind();
    if (left_ > 0) throw std::invalid_argument("bubble work waits for each other in a circle");
    return std::move(result_);
  }

 private:
  const BubbleTask& item(int i) const { return bubble_work_.items[i]; }
  const std::vector<Gap>& gaps(std::size_t rank) const { return periodic_.gaps[rank]; }

  void enter(int i) {
    for (const TaskId task : item(i).after) ready_at_[i] = std::max(ready_at_[i], periodic_.end[task]);
    for (const BubbleGroup group : item(i).after_groups) {
      if (group_left_[group] == 0) continue;  // an empty group
      ++missing_[i];
      waiters_[group].push_back(i);
    }
    if (missing_[i] == 0) release(i);
  }

  // Everything that `i` waits for is placed, so it can run from ready_at_ on.
  void release(int i) {
    const Task& task = item(i).task;
    if (task.communicator == none) return queues_[task.rank].add(i, ready_at_[i]);
    double& free = lane_free_[task.communicator];
    const double start = std::max(free, ready_at_[i]);
    free = start + item(i).seconds;
    result_.places[i].start_s = start;
    complete(i, free);
  }

  void complete(int i, double end) {
    --left_;
    const std::size_t group = item(i).group;
    group_end_[group] = std::max(group_end_[group], end);
    if (--group_left_[group] > 0) return;
    for (const int waiter : waiters_[group]) {
      ready_at_[waiter] = std::max(ready_at_[waiter], group_end_[group]);
      if (--missing_[waiter] == 0) release(waiter);
    }
  }

  double begin_of(const Walk& walk, std::size_t rank) const {
    return gaps(rank)[walk.gap].begin + walk.step * periodic_.period_s;
  }
  double end_of(const Walk& walk, std::size_t rank) const {
    return gaps(rank)[walk.gap].end + walk.step * periodic_.period_s;
  }

  // Walks in time over all ranks, so that what a rank waits for on others is known.
  void walk_gaps() {
    using Turn = std::pair<double, std::size_t>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
      if (gaps(rank).empty()) continue;
      walks_[rank].now = begin_of(walks_[rank], rank);
      turns.emplace(walks_[rank].now, rank);
    }
    int last_step = 0;                // the last step in which something was placed
    std::vector<std::size_t> parked;  // ranks two steps beyond last_step: they wait for others to place
    while (left_ > 0 && !turns.empty()) {
      const std::size_t rank = turns.top().second;
      turns.pop();
      Walk& walk = walks_[rank];
      if (walk.step > last_step + 1 || walk.step >= options_.most_steps) {
        parked.push_back(rank);
        continue;
      }
      if (place_one(rank) && walk.step > last_step) {
        last_step = walk.step;
        for (const std::size_t other : parked) turns.emplace(walks_[other].now, other);
        parked.clear();
      }
      turns.emplace(walk.now, rank);
    }
    result_.steps = last_step + 1;
  }

  // Places an item at the walk's date, or moves the walk on.
  bool place_one(std::size_t rank) {
    Walk& walk = walks_[rank];
    Queue& queue = queues_[rank];
    queue.advance(walk.now);
    const double room = end_of(walk, rank) - walk.now;
    const int i = queue.take([&](int each) { return item(each).seconds * options_.margin < room; });
    if (i >= 0) {
      result_.places[i] = {walk.step, gaps(rank)[walk.gap].after, walk.now, false};
      walk.now += item(i).seconds;
      complete(i, walk.now);
      return true;
    }
    if (const double date = queue.next_date(); date < end_of(walk, rank)) {
      walk.now = date;
      return false;
    }
    if (++walk.gap == gaps(rank).size()) walk.gap = 0, ++walk.step;
    walk.now = begin_of(walk, rank);
    return false;
  }

  // Per rank: the end of its lane.
  std::vector<double> ends_of_window() const {
    std::vector<double> ends(walks_.size(), 0);
    for (std::size_t rank = 0; rank < walks_.size(); ++rank)
      if (!gaps(rank).empty()) ends[rank] = gaps(rank).back().begin + (result_.steps - 1) * periodic_.period_s;
    for (std::size_t i = 0; i < result_.places.size(); ++i) {
      const BubbleTask& bubble_work = bubble_work_.items[i];
      if (bubble_work.task.communicator != none) continue;
      double& end = ends[bubble_work.task.rank];
      end = std::max(end, result_.places[i].start_s + bubble_work.seconds);
    }
    return ends;
  }

  // Runs items behind the last task of the window's last step, and behind what was placed there.
  void run_behind() {
    const int step = result_.steps - 1;
    std::vector<double> free = ends_of_window();
    while (left_ > 0) {
      std::size_t next = walks_.size();
      double date = never;
      for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
        queues_[rank].advance(free[rank]);
        const double can = queues_[rank].has_ready() ? free[rank] : std::max(free[rank], queues_[rank].next_date());
        if (can < date) date = can, next = rank;
      }
      if (next == walks_.size()) return;  // no rank can go on: a circle
      queues_[next].advance(date);
      const int i = queues_[next].take([](int) { return true; });
      result_.places[i] = {step, gaps(next).empty() ? 0 : gaps(next).back().after, date, true};
      free[next] = date + item(i).seconds;
      complete(i, free[next]);
    }
  }

  const PeriodicStep& periodic_;
  const BubbleWork& bubble_work_;
  const FillOptions& options_;
  std::vector<Walk> walks_;    // per rank
  std::vector<Queue> queues_;  // per rank
  std::vector<double> lane_free_;
  std::vector<int> group_left_;
  std::vector<double> group_end_;
  std::vector<std::vector<int>> waiters_;  // per group
  std::vector<double> ready_at_;           // per item
  std::vector<int> missing_;               // per item: groups that are not complete
  Assignment result_;
  std::size_t left_ = 0;
};

}  // namespace

Filling fill(const TaskGraph& step, const Durations& durations, const BubbleWork& bubble_work,
             const FillOptions& options) {
  refuse_strangers(step, bubble_work);
  const PeriodicStep periodic = periodic_step(step, durations);
  const Assignment assignment = assign(periodic, bubble_work, options);
  Filling filling;
  filling.graph = Builder(step, bubble_work, assignment).run();
  for (int s = 0; s < assignment.steps; ++s)
    filling.durations.seconds.insert(filling.durations.seconds.end(), durations.begin(), durations.end());
  for (const BubbleTask& item : bubble_work.items) filling.durations.push_back(item.seconds);
  set_global_order(filling.graph, filling.durations);
  filling.period_s = periodic.period_s;
  filling.window_period_s = periodic_step(filling.graph, filling.durations).period_s;
  filling.ranks = ranks_of(step, durations, bubble_work, assignment);
  return filling;
}

Utilization utilization_of(const Filling& filling) {
  constexpr double most_ceiling_steps = 1e6;  // a bubble that is a rounding error holds nothing
  Utilization result;
  double end = 0;
  for (const RankFilling& rank : filling.ranks) {
    const double bubble = filling.period_s - rank.pass_s - rank.end_s;
    if (rank.bubble_work_s <= 0) continue;
    if (bubble * most_ceiling_steps <= rank.bubble_work_s) {
      result.ceiling_steps = 0;
      break;
    }
    // An excess over whole steps by a rounding error does not count.
    result.ceiling_steps =
        std::max(result.ceiling_steps, static_cast<int>(std::ceil(rank.bubble_work_s / bubble - 1e-9)));
  }
  for (const RankFilling& rank : filling.ranks) end = std::max(end, rank.end_s);
  const double steps = filling.graph.window, ranks = static_cast<double>(filling.ranks.size());
  const double pipeline = filling.period_s - end, filled = filling.window_period_s / steps - end;
  for (const RankFilling& rank : filling.ranks) {
    result.before += rank.pass_s / pipeline / ranks;
    const double placed = result.ceiling_steps > 0 ? rank.bubble_work_s / result.ceiling_steps : 0;
    result.ceiling += (rank.pass_s + placed) / pipeline / ranks;
    result.own_cycles +=
        (rank.pass_s + rank.bubble_work_s / rank.steps) / (pipeline + rank.behind_s / rank.steps) / ranks;
    result.after += (rank.pass_s + rank.bubble_work_s / steps) / filled / ranks;
  }
  return result;
}

PeriodicStep periodic_step(const TaskGraph& step, const Durations& durations) {
  const std::size_t count = step.tasks.size();
  const std::vector<TaskId> first = first_tasks(step);
  PeriodicStep periodic;
  Timeline timeline;
  std::size_t base = 0;
  for (int warm = 2; warm <= most_warm_steps; warm *= 2) {
    timeline = replay(step, durations, warm + 2);
    base = static_cast<std::size_t>(warm) * count;
    double shortest = std::numeric_limits<double>::infinity();
    periodic.period_s = 0;
    for (const TaskId task : first) {
      const double period = timeline.start[base + count + task] - timeline.start[base + task];
      shortest = std::min(shortest, period);
      periodic.period_s = std::max(periodic.period_s, period);
    }
    if (periodic.period_s - shortest <= same_period * periodic.period_s) break;
  }
  double origin = std::numeric_limits<double>::infinity();
  for (const TaskId task : first) origin = std::min(origin, timeline.start[base + task]);
  for (std::size_t task = 0; task < count; ++task) periodic.end.push_back(timeline.end[base + task] - origin);
  for (std::size_t rank = 0; rank < step.compute_order.size(); ++rank) {
    const auto list = step.compute_order[rank];
    std::vector<Gap>& gaps = periodic.gaps.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool last = i + 1 == list.size();
      const double next =
          last ? timeline.start[base + list.front()] + periodic.period_s : timeline.start[base + list[i + 1]];
      const Gap gap{static_cast<std::uint32_t>(i + 1), periodic.end[list[i]], next - origin};
      if (last || gap.end > gap.begin) gaps.push_back(gap);
    }
  }
  return periodic;
}

Assignment assign(const PeriodicStep& periodic, const BubbleWork& bubble_work, const FillOptions& options) {
  return Assigner(periodic, bubble_work, options).run();
}

}  // namespace slipway::schedules
