// From when to when each buffer of a step takes memory, in a timeline:
//
//   writer ███████████            reader ███████            last reader ████████
//          ├─ taken ────────────────────────────────────────────────────────────┤ freed
//                                                                       ├ freed, if that reader keeps the value for its
//                                                                         backward: then it is part of `saved`
//
// What input gradients leave for weight gradients is part of what they read: taken when they end.
//
// Guarded by tests/memory_timeline_test.cpp.
#pragma once

#include <vector>

#include "schedules/graph/replay.h"
#include "schedules/program.h"

namespace slipway {

class BufferLives {
 public:
  // Of step number `step` of the timeline; both must outlive this.
  BufferLives(const TaskGraph& graph, const Timeline& timeline, int step = 0);

  double taken(BufferId buffer) const {
    const auto writer = static_cast<TaskId>(graph_.buffers[buffer].writer);
    return is_left_for_weights(graph_.buffers[buffer]) ? end(writer) : start(writer);
  }
  double freed(BufferId buffer) const;
  TaskId last_reader(BufferId buffer) const { return last_reader_[buffer]; }
  // What a recomputed block starts from.
  bool is_layer_input(BufferId buffer) const { return is_layer_input_[buffer]; }
  // Buffers that take memory, by rank.
  Rows by_rank() const;

 private:
  double start(TaskId task) const { return timeline_.start[base_ + task]; }
  double end(TaskId task) const { return timeline_.end[base_ + task]; }
  Pass pass_of(TaskId task) const { return graph_.works[static_cast<std::size_t>(graph_.tasks[task].work)].pass; }
  bool is_left_for_weights(const Buffer& buffer) const {
    return buffer.kind == BufferKind::saved && pass_of(static_cast<TaskId>(buffer.writer)) == Pass::input_grad;
  }
  bool is_handed_over(const Buffer& buffer, TaskId reader) const;

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::size_t base_;
  std::vector<TaskId> last_reader_;
  std::vector<bool> is_layer_input_;
};

}  // namespace slipway
