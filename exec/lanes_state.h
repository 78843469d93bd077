// The inside of LaneRunner: lanes_waits.cpp finds what every task waits for, lanes.cpp runs the lanes,
// lanes_gate.cpp has them agree on what comes next. Guarded by tests/lanes_test.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
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

// A lane of one step program. Steps are counted from the program's first.
struct LocalLane {
  std::string name;
  bool compute = false;
  std::vector<std::uint32_t> tasks;  // local indices, in global order
  std::mutex marks_mutex;
  std::vector<TaskMarks> marks;  // of the tasks of even steps, then of odd ones; empty without a device
  int settled = 0;               // steps, on a device
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
  void make_room(int steps) { chunks.resize(tasks.size() * static_cast<std::size_t>(steps) / chunk_size + 1); }
  static constexpr std::size_t chunk_size = 4096;
};

// A step program as this rank runs it.
struct LocalProgram {
  LocalProgram(const TaskGraph& graph, int rank, bool on_device);

  const TaskGraph& graph;
  int first_step = 0;  // of the run
  int until = 0;       // steps of its own that may be run before the lanes meet again
  std::vector<LocalTask> tasks;
  std::vector<int> lane_of;  // per local task
  std::vector<std::size_t> place_in_lane;
  std::unordered_map<TaskId, std::uint32_t> local;
  std::vector<std::unique_ptr<LocalLane>> lanes;
  std::vector<std::atomic<int>> done;  // per local task: steps completed; `stopped` after an error

 private:
  void take_lanes(int rank, bool on_device);
  void take_dependencies();
  void take_buffer_reuse(int rank);
};

// A thread, and what it is doing, for the message should it throw; now_step is of the run.
struct LaneThread {
  std::size_t lane = 0;  // of every program
  bool begun = false;    // has had a task
  const LocalProgram* program = nullptr;
  int let_through = 0;  // steps of `program` that it has been let through
  int now_step = 0;
  TaskId now_task = 0;
  const char* doing = "before its first task";  // instead of a task
};

constexpr int stopped = std::numeric_limits<int>::max();

}  // namespace slipway::laning

namespace slipway {

struct LaneRunner::State {
  std::vector<const TaskGraph*> graphs;
  int rank;
  std::function<StepSpan(int)> next;
  LaneHooks hooks;
  std::vector<std::string> names;  // of the lanes
  // Ascending in first_step. Appended to, and their room for stamps changed, where all lanes have met.
  std::vector<std::unique_ptr<laning::LocalProgram>> entered;
  mutable std::mutex entered_mutex;
  std::mutex gate;
  std::condition_variable gate_opens;
  std::size_t arrived = 0;
  int rounds = 0;        // how often it has opened
  int steps_agreed = 0;  // of the run
  bool over = false, broken = false;
  std::mutex error_mutex;
  std::exception_ptr error;

  State(std::vector<const TaskGraph*> graphs, int rank, std::function<StepSpan(int)> next, LaneHooks hooks);

  laning::LocalProgram* pass_gate(laning::LaneThread& thread);
  void open_gate();
  void enter(const TaskGraph& graph);
  void run_thread(laning::LaneThread& thread);
  void perform_all(laning::LaneThread& thread);
  void perform_span(laning::LaneThread& thread, laning::LocalProgram& program, int from);
  bool wait_for(laning::LocalProgram& program, std::uint32_t task, int steps_done);
  bool ready(laning::LocalProgram& program, const laning::LocalTask& task, int step);
  void wait_on_device(laning::LocalProgram& program, std::uint32_t task, int step);
  void perform(laning::LocalProgram& program, laning::LocalLane& lane, std::size_t place, int step);
  void stay_near(laning::LaneThread& thread, laning::LocalLane& lane, std::size_t place, int step);
  void settle(laning::LaneThread& thread, laning::LocalLane& lane);
  void end_step(laning::LaneThread& thread, laning::LocalLane& lane, int step);
  std::string text_of(const laning::LaneThread& thread) const;
  void broke(const laning::LaneThread& thread);
  void stop_all(std::exception_ptr cause);
};

}  // namespace slipway
