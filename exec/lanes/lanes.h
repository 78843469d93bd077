// Runs the tasks of a rank. Every lane of this rank is a thread. It takes its tasks one at a time in the global order
// and continues with the next step without a barrier:
//
//   compute     │ F0 │ F1 │  ···  │ B0 │        wait until the task's predecessors on this rank are done
//   pp.forward  ······ │ F0.send │              → stamp start → perform → stamp end → wake who waits for it
//
// Predecessors on other ranks need no wait here: they arrive through this rank's own communication tasks. A task that
// writes a buffer also waits for the previous step's readers of that buffer (buffer reuse). Waiting sleeps (a futex per
// task), nothing spins. There is no LibTorch here: `perform` does the task.
//
// On a device with queues (exec/lanes/device_queue.h) threads only start tasks: waits are for a start on the host and
// for an end on the device. Times are the device's. A thread is at most one step, and tasks_ahead tasks, ahead of it:
//
//   host     │ start step 0 │ start step 1 │ (step 0 over?) │ start step 2 │
//   device   ···│ step 0 ··················│ step 1 ·····················│
//
// What one lane makes and another reads returns to the allocator when the device is past it, not in the order of
// streams: what starts early holds memory. The device stays busy meanwhile, because the task waited for lies far back.
//
// A run whose batch grows has several step programs with the same lanes (schedules/bundle/bundle.h). The next one is
// chosen where all lanes have met, between two steps. Within one program nothing holds them together:
//
//   compute     │ steps of program 0 │ next? │ steps of program 1 ···
//   pp.forward  │ steps of program 0 ········│ steps of program 1 ···
//
// Guarded by tests/exec/lanes_test.cpp.
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

constexpr std::size_t tasks_ahead = 32;  // per lane

struct LaneHooks {
  // Runs the task and returns when it is complete on this rank, or started on `device`. Called on the lane's thread.
  std::function<void(TaskId, int step)> perform;
  std::function<void(bool computes)> thread_begins;  // optional: on every lane thread, before its first task
  // Optional: compute lane, when its last task of a step is complete. With `device` a later step may be under way.
  // `ends_ns`: when each step of the graph's window was over there, without bubble work.
  std::function<void(int step, const std::vector<std::int64_t>& ends_ns)> step_ends;
  // Null: tasks are complete when `perform` returns. Must outlive the runner.
  DeviceQueue* device = nullptr;
  // Optional, with `device`: true when the compute lane must start nothing more until this step is complete.
  std::function<bool(int step)> pauses_after;
  // Optional: a lane has thrown, in a hook or where an error of the device appears later: at a mark, a wait, a finish
  // or a time. Called in the handler, on the lane's thread, once per lane. By then no lane begins another task. But
  // others may still hang in theirs, so that run() may never return: all others must be notified here. It need not
  // return. `where`: "step 3, 2F0" or "step 3, lane pp.forward: ...".
  std::function<void(const std::string& where)> lane_broke;
  // For `where`, which counts steps of the training from 1: the number of its steps before this run.
  std::int64_t steps_before = 0;
};

struct LaneStamp {
  int step = 0;  // of the run
  TaskId task = 0;
  std::string lane;                       // lane_name
  std::int64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  const TaskGraph* graph = nullptr;       // the task's program
};

// Work of the lanes until they meet again: `steps` steps of a program; 0: the run is over.
struct StepSpan {
  int program = 0;
  int steps = 0;
};

class LaneRunner {
 public:
  // Requires graph.order. The graphs must outlive the runner, and have the same lanes on this rank. `next` is called
  // with the steps done so far, on the thread of any lane. A program that was left does not return.
  LaneRunner(std::vector<const TaskGraph*> programs, int rank, std::function<StepSpan(int steps_done)> next,
             LaneHooks hooks);
  // Runs one program for `steps` steps.
  LaneRunner(const TaskGraph& graph, int rank, int steps, LaneHooks hooks);
  ~LaneRunner();

  // Runs all steps; returns when every lane is done. When a lane throws, no lane begins another task and `lane_broke`
  // is called. The first exception is rethrown from here when all lanes have ended.
  void run();

  // Stamps of tasks ended so far, lane by lane, in order. May be called from any thread while run() goes on.
  std::vector<LaneStamp> stamps() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace slipway::exec
