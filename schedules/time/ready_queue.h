// Ready tasks in the order of their dates, at one date in the order of their numbers.
//
//   dates (a heap)   3.5 ── 4.0 ── 7.25
//   tasks            {2, 9} {1}    {4, 5, 6, 7}      a bucket for each date
//
// Replicas and tensor peers become ready together, a hundred at a time. So a heap of dates is much smaller than one of
// tasks. Times never go back: nothing is pushed before the date of the last pop. A task pushed at that very date still
// gets its place among the rest. Dates are not NaN. Guarded by tests/schedules/order_test.cpp, against a heap of tasks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

class ReadyQueue {
 public:
  struct Ready {
    double time;
    TaskId task;
  };

  void push(double time, TaskId task) {
    ++size_;
    if (time == now_) {
      late_.push(task);
    } else {
      buckets_[bucket_of(time)].tasks.push_back(task);
    }
  }

  bool empty() const { return size_ == 0; }

  // Removes and returns the first. Requires !empty().
  Ready pop() {
    --size_;
    if (next_ == current_.size() && late_.empty()) open_next_date();
    if (late_.empty() || (next_ < current_.size() && current_[next_] < late_.top())) return {now_, current_[next_++]};
    const TaskId task = late_.top();
    late_.pop();
    return {now_, task};
  }

 private:
  static constexpr double no_date = std::numeric_limits<double>::quiet_NaN();  // equals none
  struct Bucket {
    double time = no_date;
    std::vector<TaskId> tasks;
  };

  // A date that `known_` forgot gets a second bucket. Both are opened together.
  std::size_t bucket_of(double time) {
    constexpr int slot_bits = 8;
    static_assert(std::tuple_size_v<decltype(known_)> == 1 << slot_bits);
    const auto mixed =
        std::bit_cast<std::uint64_t>(time) * 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio: Fibonacci hashing
    std::uint32_t& known = known_[mixed >> (64 - slot_bits)];
    if (known < buckets_.size() && buckets_[known].time == time) return known;
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(buckets_.size()));
      buckets_.emplace_back();
    }
    known = unused_.back();
    unused_.pop_back();
    buckets_[known].time = time;
    dates_.push({time, known});
    return known;
  }

  void open_next_date() {
    now_ = dates_.top().first;
    current_.clear();
    next_ = 0;
    for (; !dates_.empty() && dates_.top().first == now_; dates_.pop()) {
      Bucket& bucket = buckets_[dates_.top().second];
      current_.insert(current_.end(), bucket.tasks.begin(), bucket.tasks.end());
      bucket.tasks.clear();
      bucket.time = no_date;
      unused_.push_back(dates_.top().second);
    }
    if (!std::is_sorted(current_.begin(), current_.end())) std::sort(current_.begin(), current_.end());
  }

  using Date = std::pair<double, std::uint32_t>;  // and its bucket
  std::size_t size_ = 0;
  double now_ = no_date;
  std::vector<TaskId> current_;                                            // of the date at hand, ascending
  std::size_t next_ = 0;                                                   // in current_
  std::priority_queue<TaskId, std::vector<TaskId>, std::greater<>> late_;  // pushed since at that date
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> unused_;
  std::priority_queue<Date, std::vector<Date>, std::greater<>> dates_;
  std::array<std::uint32_t, 256> known_{};  // buckets by the hash of their dates
};

}  // namespace slipway::schedules
