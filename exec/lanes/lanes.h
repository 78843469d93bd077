// When a task runs, and on which thread. Every lane of this rank is a thread that takes its tasks one at a
// time in the global order and goes on with the next step by itself, without a barrier:
//
//   compute     │ F0 │ F1 │  ···  │ B0 │        wait until the task's predecessors on this rank are done
//   pp.forward  ······ │ F0.send │              → stamp start → perform → stamp end → tell who waits for it
//
// Predecessors on other ranks need no wait here: they arrive through this rank's own communication tasks.
// A task that writes a buffer also waits for the previous step's readers of that buffer (buffer reuse).
// Waiting sleeps (a futex per task), nothing spins. No LibTorch here: `perform` says what a task does.
//
// On a device with queues (exec/lanes/device_queue.h) threads only start tasks: a wait is for the predecessor's start here and
// for its end there, times are the device's, and a thread runs at most one step, and tasks_ahead tasks, ahead of it:
//
//   host     │ start step 0 │ start step 1 │ (step 0 over?) │ start step 2 │
//   device   ···│ step 0 ··················│ step 1 ·····················│
//
// What one lane makes and another reads returns to the allocator when the device is over it, not in the order of streams:
// what is started early holds memory. The device does not run dry meanwhile, for what is waited for lies so far back.
//
// A run whose batch grows has several step programs with the same lanes (schedules/graph/bundle.h). Which one is next is asked
// where all lanes have met, between two steps; while they run the same one, nothing holds them together:
//
//   compute     │ steps of program 0 │ next? │ steps of program 1 ···
//   pp.forward  │ steps of program 0 ········│ steps of program 1 ···
//
// Guarded by tests/exec/lanes_test.cpp and tests/exec/lanes_test.cpp.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/lanes/device_queue.h"
#include "schedules/graph/task_graph.h"

namespace slipway::exec {

constexpr std::size_t tasks_ahead = 32;  // of a lane

struct LaneHooks {
  // Does the task and returns when it is complete on this rank, or started on `device`. Called on the task's lane thread.
  std::function<void(TaskId, int step)> perform;
  std::function<void(bool computes)> thread_begins;  // optional: on every lane thread, before its first task
  // Optional: compute lane, when its last task of a step is complete. With `device` a later step may be under way.
  // `ends_ns`: when each step of the graph's window was over there, but for what fills bubbles.
  std::function<void(int step, const std::vector<std::int64_t>& ends_ns)> step_ends;
  // Null: tasks are complete when `perform` returns. Must outlive the runner.
  DeviceQueue* device = nullptr;
  // Optional, with `device`: true when the compute lane shall start nothing more until this step is complete.
  std::function<bool(int step)> pauses_after;
  // Optional: a lane has thrown, in a hook or where an error of the device appears, which is anywhere later: at a mark, a
  // wait, a finish or a time. Called in the handler, on the lane's thread, once a lane; by then no lane begins another
  // task, but others may still hang in theirs, so that run() may never return: who else must know is told here.
  // `where`: "step 3, 2F0" or "step 3, lane pp.forward: ...". It need not return.
  std::function<void(const std::string& where)> lane_broke;
  // For `where`, in which people read steps of the training, counted from 1: those of it before this run.
  std::int64_t steps_before = 0;
};

struct LaneStamp {
  int step = 0;  // of the run
  TaskId task = 0;
  std::string lane;                       // lane_name
  std::int64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  const TaskGraph* graph = nullptr;       // whose task it is
};

// What the lanes do until they meet again: so many steps of that program; none: the run is over.
struct StepSpan {
  int program = 0;
  int steps = 0;
};

class LaneRunner {
 public:
  // Requires graph.order. The graphs must outlive the runner, and have the same lanes on this rank. `next` is asked with
  // the steps done so far, on the thread of any lane; a program that was left does not come again.
  LaneRunner(std::vector<const TaskGraph*> programs, int rank, std::function<StepSpan(int steps_done)> next,
             LaneHooks hooks);
  // One program, so many steps.
  LaneRunner(const TaskGraph& graph, int rank, int steps, LaneHooks hooks);
  ~LaneRunner();

  // Runs all steps; returns when every lane is done. When a lane throws, no lane begins another task, `lane_broke` is
  // told, and the first exception is thrown again from here when all lanes have ended.
  void run();

  // What has ended so far, lane by lane, in order. May be called from any thread while run() goes on.
  std::vector<LaneStamp> stamps() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
