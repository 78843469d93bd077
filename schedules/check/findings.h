// Common parts of the checks: a limited collection of one invariant's violations, the position of every task in the
// global order, and a task's name for a reader.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedules/check/check.h"

namespace slipway::schedules {

// Keeps the first `most` violations of an invariant, because one wrong rule breaks thousands of tasks alike.
class Findings {
 public:
  static constexpr std::size_t most = 20;
  explicit Findings(int invariant) : invariant_(invariant) {}
  bool full() const { return found_.size() >= most; }
  void add(std::vector<TaskId> culprits, std::string message) {
    if (!full()) found_.push_back({invariant_, std::move(culprits), std::move(message)});
  }
  std::vector<Violation> take() { return std::move(found_); }

 private:
  int invariant_;
  std::vector<Violation> found_;
};

// Position of every task in graph.order; empty when the order is no permutation of the tasks (I2 reports that).
std::vector<std::uint32_t> positions_of(const TaskGraph& graph);

// "2F0 on rank 2", "2F0.send on ranks 2, 3".
std::string spoken(const TaskGraph& graph, TaskId task);

}  // namespace slipway::schedules
