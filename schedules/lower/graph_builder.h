// Appends tasks, buffers and shared works to a TaskGraph and closes it. Edges follow from who writes and who reads a
// buffer, plus a few control edges that are given.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedules/graph/task_graph.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// Returns `rows` with (row, value) pairs added behind each row's own values. Sorts `added`.
Rows with_added(const Rows& rows, std::vector<std::pair<std::uint32_t, std::uint32_t>>& added);

class GraphBuilder {
 public:
  GraphBuilder(TaskGraph& graph, std::size_t most_tasks) : graph_(graph), most_tasks_(most_tasks) {}

  // Index of an equal work, added when new.
  int work(const Work& work);
  BufferId buffer(BufferKind kind, Wires wire, int rank, double bytes);
  // Ids of consecutive tasks are consecutive. Sets the writer of every output. Throws std::length_error beyond most_tasks.
  TaskId task(const Task& task, std::span<const BufferId> inputs, std::span<const BufferId> outputs);
  // `before` ends before `after` starts, though no buffer requires it.
  void control(TaskId before, TaskId after) { control_.emplace_back(before, after); }
  // Reserves this many times the present size: vectors that grow by millions would be copied again and again. Unused
  // reserve costs addresses, no memory.
  void make_room(double times);
  // Adds an output to an existing task (known only once the compute order is).
  void late_output(TaskId task, BufferId buffer);
  // Builds predecessors and successors.
  void close();

 private:
  TaskGraph& graph_;
  std::size_t most_tasks_;
  std::unordered_multimap<std::size_t, int> known_works_;  // by a hash of what is_same compares (graph_builder.cpp)
  std::vector<std::pair<TaskId, TaskId>> control_;
  std::vector<std::pair<TaskId, BufferId>> late_outputs_;
};

// Several steps as one graph. What repeats only every k steps (a refresh of K-FAC's inverses) is then an ordinary
// task, and what one step keeps for a later one is an ordinary buffer.
//
//   step graph   F F B B O          window of 3   F F B B O  F F B B O  F F B B O       Task::step 0, 1, 2
//   carried:     O ─► next F                      └────────┴─►┘ └──────┴─►┘ ... carried to the next window
//
// With n tasks a step, task s·n + t is task t of step s; buffers likewise. Engines run a window as they run a step;
// what they call a step is then `window` steps long. Guarded by tests/schedules/fill_test.cpp.

// An order of `step` is not used; the result has none. Throws std::invalid_argument for steps < 1 and for a graph
// that is a window already.
TaskGraph window_of(const TaskGraph& step, int steps);

}  // namespace slipway::schedules
