#include "schedules/graph/fill_place.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>

namespace slipway {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Items whose dependencies are known to end, by the date at which they do, and those whose date has come,
// in the order of choice.
class Queue {
 public:
  explicit Queue(const std::vector<FillerItem>& items) : ready_(Order{&items}) {}

  void add(int item, double ready_at) { waiting_.emplace(ready_at, item); }
  void advance(double now) {
    for (; !waiting_.empty() && waiting_.top().first <= now; waiting_.pop())
      ready_.insert(waiting_.top().second);
  }
  double next_date() const { return waiting_.empty() ? never : waiting_.top().first; }
  // The first that `fits`, taken out; −1 when none does.
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
    const std::vector<FillerItem>* items;
    bool operator()(int a, int b) const {
      const FillerItem &x = (*items)[at(a)], &y = (*items)[at(b)];
      return std::tuple(x.priority, -x.seconds, a) < std::tuple(y.priority, -y.seconds, b);
    }
  };
  using Waiting = std::pair<double, int>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::set<int, Order> ready_;
};

// Where a rank's walk through its gaps stands.
struct Walk {
  int step = 0;
  std::size_t gap = 0;
  double now = 0;
};

class Assigner {
 public:
  Assigner(const SteadyStep& steady, const Fillers& fillers, const FillOptions& options)
      : steady_(steady),
        fillers_(fillers),
        options_(options),
        walks_(steady.gaps.size()),
        queues_(steady.gaps.size(), Queue(fillers.items)),
        lane_free_(fillers.communicators.size(), 0),
        group_left_(at(fillers.groups)),
        group_end_(at(fillers.groups), 0),
        waiters_(at(fillers.groups)),
        ready_at_(fillers.items.size(), 0),
        missing_(fillers.items.size(), 0) {
    result_.places.resize(fillers.items.size());
    left_ = fillers.items.size();
    for (const FillerItem& item : fillers.items) ++group_left_[at(item.group)];
    for (std::size_t i = 0; i < fillers.items.size(); ++i) enter(static_cast<int>(i));
  }

  Assignment run() {
    if (options_.use_bubbles)
      walk_gaps();
    else
      result_.steps = options_.steps;
    run_behind();
    if (left_ > 0) throw std::invalid_argument("fillers wait for each other in a circle");
    return std::move(result_);
  }

 private:
  const FillerItem& item(int i) const { return fillers_.items[at(i)]; }
  const std::vector<Gap>& gaps(std::size_t rank) const { return steady_.gaps[rank]; }

  void enter(int i) {
    for (const TaskId task : item(i).after)
      ready_at_[at(i)] = std::max(ready_at_[at(i)], steady_.end[task]);
    for (const FillerGroup group : item(i).after_groups) {
      if (group_left_[at(group)] == 0) continue;  // nothing in it
      ++missing_[at(i)];
      waiters_[at(group)].push_back(i);
    }
    if (missing_[at(i)] == 0) release(i);
  }

  // All that `i` waits for is placed: it can run from ready_at_ on.
  void release(int i) {
    const Task& task = item(i).task;
    if (task.communicator == none) return queues_[at(task.rank)].add(i, ready_at_[at(i)]);
    double& free = lane_free_[at(task.communicator)];
    const double start = std::max(free, ready_at_[at(i)]);
    free = start + item(i).seconds;
    result_.places[at(i)].start_s = start;
    complete(i, free);
  }

  void complete(int i, double end) {
    --left_;
    const std::size_t group = at(item(i).group);
    group_end_[group] = std::max(group_end_[group], end);
    if (--group_left_[group] > 0) return;
    for (const int waiter : waiters_[group]) {
      ready_at_[at(waiter)] = std::max(ready_at_[at(waiter)], group_end_[group]);
      if (--missing_[at(waiter)] == 0) release(waiter);
    }
  }

  double begin_of(const Walk& walk, std::size_t rank) const {
    return gaps(rank)[walk.gap].begin + walk.step * steady_.period_s;
  }
  double end_of(const Walk& walk, std::size_t rank) const {
    return gaps(rank)[walk.gap].end + walk.step * steady_.period_s;
  }

  // In time over all ranks, so that what a rank waits for of others is known.
  void walk_gaps() {
    using Turn = std::pair<double, std::size_t>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
      if (gaps(rank).empty()) continue;
      walks_[rank].now = begin_of(walks_[rank], rank);
      turns.emplace(walks_[rank].now, rank);
    }
    int last_step = 0;                // in which something was placed
    std::vector<std::size_t> parked;  // ranks that are two steps beyond that: they wait for others to place
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
      result_.places[at(i)] = {walk.step, gaps(rank)[walk.gap].after, walk.now, false};
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

  // Per rank: when everything of its lane is over.
  std::vector<double> ends_of_window() const {
    std::vector<double> ends(walks_.size(), 0);
    for (std::size_t rank = 0; rank < walks_.size(); ++rank)
      if (!gaps(rank).empty())
        ends[rank] = gaps(rank).back().begin + (result_.steps - 1) * steady_.period_s;
    for (std::size_t i = 0; i < result_.places.size(); ++i) {
      const FillerItem& filler = fillers_.items[i];
      if (filler.task.communicator != none) continue;
      double& end = ends[at(filler.task.rank)];
      end = std::max(end, result_.places[i].start_s + filler.seconds);
    }
    return ends;
  }

  // Behind the last task of the window's last step, and behind what was placed there.
  void run_behind() {
    const int step = result_.steps - 1;
    std::vector<double> free = ends_of_window();
    while (left_ > 0) {
      std::size_t next = walks_.size();
      double date = never;
      for (std::size_t rank = 0; rank < walks_.size(); ++rank) {
        queues_[rank].advance(free[rank]);
        const double can =
            queues_[rank].has_ready() ? free[rank] : std::max(free[rank], queues_[rank].next_date());
        if (can < date) date = can, next = rank;
      }
      if (next == walks_.size()) return;  // nobody can go on: a circle
      queues_[next].advance(date);
      const int i = queues_[next].take([](int) { return true; });
      result_.places[at(i)] = {step, gaps(next).empty() ? 0 : gaps(next).back().after, date, true};
      free[next] = date + item(i).seconds;
      complete(i, free[next]);
    }
  }

  const SteadyStep& steady_;
  const Fillers& fillers_;
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

Assignment assign(const SteadyStep& steady, const Fillers& fillers, const FillOptions& options) {
  return Assigner(steady, fillers, options).run();
}

}  // namespace slipway
