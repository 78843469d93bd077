// Sound graphs to break: small lowered Llamas, and edits that a wrong lowering could make. For the tests of the checks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"

namespace slipway::test {

struct Shape {
  int tensor = 1, pipeline = 1, data = 1, chunks = 1, zero = 0;
  bool tied = false;
  double clip_norm = 0;
  Recompute recompute = Recompute::none;
  std::string schedule = "1f1b";
  bool sequence_parallel = true;  // with tensor > 1
  bool qk_norm = false;
  std::int64_t kv_heads = 4;
};

inline TaskGraph sound(const Shape& shape) {
  Step input;
  input.model = llama("small", {.layers = 6,
                                .hidden = 64,
                                .ffn = 128,
                                .heads = 4,
                                .kv_heads = shape.kv_heads,
                                .vocab = 256,
                                .sequence = 32,
                                .tied = shape.tied});
  input.layout.tensor = shape.tensor, input.layout.pipeline = shape.pipeline, input.layout.data = shape.data;
  input.layout.chunks = shape.chunks, input.layout.zero = shape.zero;
  Model model = input.model;
  model.runs[1].block.qk_norm = shape.qk_norm;
  input.model = model;
  input.layout.sequence_parallel = shape.sequence_parallel && shape.tensor > 1;
  input.schedule = shape.chunks > 1 ? "interleaved-1f1b" : shape.schedule;
  input.dtype = Dtype::float32;
  input.recompute = shape.recompute;
  input.clip_norm = shape.clip_norm;
  input.global_batch = 4 * shape.data;
  TaskGraph graph = lower(input);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

inline TaskId task_called(const TaskGraph& graph, const std::string& label, int rank = none) {
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const auto members = members_of(graph, id);
    const bool there = rank == none || std::find(members.begin(), members.end(), rank) != members.end();
    if (there && label_of(graph, id) == label) return id;
  }
  throw std::logic_error("no task is called " + label);
}

// Rows with one row replaced.
inline Rows with_row(const Rows& rows, std::size_t row, const std::vector<std::uint32_t>& values) {
  Rows result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto old = rows[i];
    if (i == row)
      result.values.insert(result.values.end(), values.begin(), values.end());
    else
      result.values.insert(result.values.end(), old.begin(), old.end());
    result.begin.push_back(static_cast<std::uint32_t>(result.values.size()));
  }
  return result;
}

inline std::vector<std::uint32_t> row_of(const Rows& rows, std::size_t row) {
  return {rows[row].begin(), rows[row].end()};
}

// Adds and removes edges in both directions, so that the graph stays consistent with itself.
inline void add_edge(TaskGraph& graph, TaskId from, TaskId to) {
  auto next = row_of(graph.successors, from), before = row_of(graph.predecessors, to);
  next.push_back(to);
  before.push_back(from);
  std::sort(next.begin(), next.end());
  std::sort(before.begin(), before.end());
  graph.successors = with_row(graph.successors, from, next);
  graph.predecessors = with_row(graph.predecessors, to, before);
}
inline void remove_edge(TaskGraph& graph, TaskId from, TaskId to) {
  auto next = row_of(graph.successors, from), before = row_of(graph.predecessors, to);
  ASSERT_EQ(std::erase(next, to), 1U);
  ASSERT_EQ(std::erase(before, from), 1U);
  graph.successors = with_row(graph.successors, from, next);
  graph.predecessors = with_row(graph.predecessors, to, before);
}

inline void swap_in_order(TaskGraph& graph, TaskId a, TaskId b) {
  std::iter_swap(std::find(graph.order.begin(), graph.order.end(), a),
                 std::find(graph.order.begin(), graph.order.end(), b));
}

inline Lane& lane_of(const TaskGraph& graph, std::vector<Lane>& lanes, int rank, const std::string& name) {
  return *std::find_if(lanes.begin(), lanes.end(),
                       [&](const Lane& lane) { return lane.rank == rank && lane_name(graph, lane) == name; });
}

// The first violation, or empty.
inline std::string first(const std::vector<Violation>& violations) {
  return violations.empty() ? "no violation" : violations.front().message;
}

// Turns one task into another work, as a wrong lowering would.
inline void change_work(TaskGraph& graph, TaskId id, const std::function<void(Work&)>& change) {
  Work work = graph.work(id);
  change(work);
  graph.tasks[id].work = static_cast<std::int32_t>(graph.works.size());
  graph.works.push_back(work);
}

}  // namespace slipway::test
