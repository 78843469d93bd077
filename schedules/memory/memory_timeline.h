// The time during which each buffer of a step takes memory, in a timeline:
//
//   writer ███████████            reader ███████            last reader ████████
//          ├─ taken ────────────────────────────────────────────────────────────┤ freed
//                                                                       ├ freed, if that reader keeps the value for
//                                                                         its backward: it is then part of `saved`
//
// What input gradients leave for weight gradients is part of what they read, so it is taken when they end.
//
// Guarded by tests/schedules/memory_timeline_test.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/memory/memory_parts.h"
#include "schedules/graph/task_graph.h"
#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

class BufferLives {
 public:
  // Looks at step number `step` of the timeline. Both must outlive this.
  BufferLives(const TaskGraph& graph, const Timeline& timeline, int step = 0);

  double taken(BufferId buffer) const {
    const TaskId writer = graph_.writer(buffer).value();
    return is_left_for_weights(graph_.buffers[buffer]) ? end(writer) : start(writer);
  }
  double freed(BufferId buffer) const;
  TaskId last_reader(BufferId buffer) const { return last_reader_[buffer]; }
  // True for the input from which a block is recomputed.
  bool is_layer_input(BufferId buffer) const { return is_layer_input_[buffer]; }
  // Buffers that take memory, by rank.
  Rows by_rank() const;

 private:
  double start(TaskId task) const { return timeline_.start[base_ + task]; }
  double end(TaskId task) const { return timeline_.end[base_ + task]; }
  Pass pass_of(TaskId task) const { return graph_.work(task).pass; }
  bool is_left_for_weights(const Buffer& buffer) const {
    return buffer.kind == BufferKind::saved && pass_of(graph_.writer(buffer).value()) == Pass::input_grad;
  }
  bool is_handed_over(const Buffer& buffer, TaskId reader) const;

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::size_t base_;
  std::vector<TaskId> last_reader_;
  std::vector<bool> is_layer_input_;
};

// Memory of every rank over a step, from the buffers that are alive in a timeline, and its parts at the peak.
//
//   bytes │        ┌──┐ peak: 0F3          held from the start of the writer to the end of the last reader,
//         │     ┌──┘  └──┐                 or to its start when that reader keeps the value for its backward
//         │  ┌──┘        └──┐              (then it is part of `saved`)
//         └──┴── weights, gradients, optimizer: throughout ──► time
//
// Only the first step of the timeline counts. The parts sum to the peak.
// Guarded by tests/schedules/metrics_test.cpp (against Fujii 2024) and tests/schedules/memory_timeline_test.cpp.

struct RankMemory {
  StaticBytes fixed;
  double activations_peak = 0;  // largest sum of live buffers
  double peak = 0;              // fixed + activations_peak
  std::string peak_task;        // label of the task during which the peak occurs
  MemoryParts parts;            // at the peak
};
// The verdict of I7, for check_memory and for reports: the use fits into `capacity` bytes.
inline bool fits(const RankMemory& use, double capacity) { return use.peak <= capacity; }

// `periodic`: for periodic steps. The peak is that of the whole step; only its task may be of a later micro-batch.
std::vector<RankMemory> memory_timeline(const TaskGraph& graph, const Timeline& timeline,
                                        const PeriodicTimeline* periodic = nullptr);

// A rank's memory over one step of a timeline, as the executor's meter reads it (exec/rank/memory_meter.h): at the end
// of a task, and the most while it ran.
//
//   bytes │      ┌────┐            at one date, first what ends is given back, then what starts is taken
//         │  ┌───┘    └──┐
//         └──┴───────────┴── weights, gradients, optimizer ──► time
//
// Buffers that live from one step to the next are not counted. Guarded by tests/schedules/memory_timeline_test.cpp.

class MemoryCurve {
 public:
  struct Use {
    double at_end = 0, most = 0;  // bytes
  };

  // `buffers`: the rank's buffers that take memory. `fixed`: bytes that it holds all the time.
  MemoryCurve(const TaskGraph& graph, const BufferLives& lives, std::span<const BufferId> buffers, double fixed);

  // For a task from `start` to `end`, in seconds of the timeline.
  Use during(double start, double end) const;

 private:
  struct Point {
    double time = 0;
    double given_back = 0, taken = 0;  // bytes at `time`, before and after what starts then
  };
  double fixed_;
  std::vector<Point> points_;  // ascending times
};

}  // namespace slipway::schedules
