// The inside of LaneRunner: lanes_waits.cpp finds what every task waits for, lanes.cpp runs the lanes.
// Guarded by tests/lanes_test.cpp.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "exec/lanes.h"

namespace slipway::laning {

// A task of this rank: what must be done before it may start.
struct LocalTask {
  TaskId task = 0;
  std::vector<std::uint32_t> same_step;  // local indices, other lanes only
  std::vector<std::uint32_t> step_before;
};

struct Stamp {
  std::int64_t start_ns = 0, end_ns = 0;
};

// When a task of one step starts and ends on the device.
struct TaskMarks {
  int step = none;
  DeviceQueue::Mark start, end;
};

// What a lane is doing, for the message should it throw.
struct Whereabouts {
  int step = 0;
  TaskId task = 0;
  const char* doing = nullptr;  // instead of a task
};

struct LocalLane {
  std::string name;
  Whereabouts now{0, 0, "before its first task"};  // its own thread's
  bool compute = false;
  std::vector<std::uint32_t> tasks;  // local indices, in global order
  std::mutex marks_mutex;
  std::vector<TaskMarks> marks;  // of the tasks of even steps, then of odd ones; empty without a device
  // In order of time; a chunk is made when it is needed, so that a run of many steps takes the memory it
  // uses.
  std::vector<std::unique_ptr<Stamp[]>> chunks;
  std::atomic<std::size_t> ended{0};  // readers look at no later stamp

  TaskMarks& marks_of(int step, std::size_t place) {
    return marks[static_cast<std::size_t>(step & 1) * tasks.size() + place];
  }
  Stamp& stamp(std::size_t i) {
    std::unique_ptr<Stamp[]>& chunk = chunks[i / chunk_size];
    if (!chunk) chunk = std::make_unique<Stamp[]>(chunk_size);
    return chunk[i % chunk_size];
  }
  static constexpr std::size_t chunk_size = 4096;
};

constexpr int stopped = std::numeric_limits<int>::max();

}  // namespace slipway::laning

namespace slipway {

struct LaneRunner::State {
  const TaskGraph& graph;
  int rank, steps;
  LaneHooks hooks;
  std::vector<laning::LocalTask> tasks;
  std::vector<int> lane_of;               // per local task
  std::vector<std::size_t> place_in_lane;
  std::unordered_map<TaskId, std::uint32_t> local;
  std::vector<std::unique_ptr<laning::LocalLane>> lanes;
  std::vector<std::atomic<int>> done;  // per local task: steps completed; `stopped` after an error
  std::mutex error_mutex;
  std::exception_ptr error;

  State(const TaskGraph& the_graph, int the_rank, int the_steps, LaneHooks the_hooks)
      : graph(the_graph), rank(the_rank), steps(the_steps), hooks(std::move(the_hooks)) {}

  void take_lanes();
  void take_dependencies();
  void take_buffer_reuse();
  void run_lane(laning::LocalLane& lane);
  bool wait_for(std::uint32_t task, int steps_done);
  bool ready(const laning::LocalTask& task, int step);
  void wait_on_device(std::uint32_t task, int step);
  void perform(laning::LocalLane& lane, std::size_t place, int step);
  void stay_near(laning::LocalLane& lane, std::size_t place, int step, int settled);
  void settle(laning::LocalLane& lane, int step);
  void end_step(laning::LocalLane& lane, int step, std::int64_t end_ns);
  void perform_all(laning::LocalLane& lane);
  std::string text_of(const laning::LocalLane& lane) const;
  void broke(const laning::LocalLane& lane);
  void stop_all(std::exception_ptr cause);
};

}  // namespace slipway
