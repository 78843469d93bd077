// The dates at which timed units end and latencies are paid: a heap of (date, unit instance).
//
// SimGrid's own Timer costs an allocation and a Fibonacci-heap node each. Here only the earliest date is a SimGrid
// timer (engine.cpp), so a date at which a thousand tasks end wakes the engine once. An entry whose task has changed
// speed since is stale: the newer entry counts, and of equal ones the first (SharedCompute::comes_due).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace slipway::sim {

using Instance = std::uint32_t;  // step * units + unit (chains.h)

class Calendar {
 public:
  using Entry = std::pair<double, Instance>;

  bool empty() const { return entries_.empty(); }
  double next_date() const { return entries_.front().first; }
  void add(double date, Instance instance) {
    entries_.emplace_back(date, instance);
    std::push_heap(entries_.begin(), entries_.end(), std::greater<>());
  }
  // Removes and returns the earliest entry; at one date, the smallest instance.
  Entry take() {
    std::pop_heap(entries_.begin(), entries_.end(), std::greater<>());
    const Entry entry = entries_.back();
    entries_.pop_back();
    return entry;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace slipway::sim
