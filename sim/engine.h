// The event loop, inside SimGrid's. At each date:
//
//   1. collect everything that happens now: calendar entries and ended flows
//   2. sort by unit instance; end the ended, start what became ready, until nothing more is ready now
//   3. settle changed compute speeds; ask SimGrid to wake us at the calendar's next date
//
// It runs in maestro, without actors, once per process (isolate.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "sim/frontier.h"

namespace slipway::sim {

// The results: times per task instance (step * tasks + id), and the counters of a Simulation.
struct SimulationOutput {
  std::span<double> start, end;
  // Progress so far, read by another process: task instances that are done, and the simulated clock.
  std::atomic<std::uint64_t>* done = nullptr;
  std::atomic<double>* now = nullptr;
  std::uint64_t* flows = nullptr;
  std::uint64_t* units = nullptr;  // tasks and chains of one step
  double* wall_s = nullptr;
};

using RunEngine = void(const TaskGraph& graph, const Cluster& cluster, const TaskForms& forms, const UnitGraph& units,
                       int steps, const SimulationOutput& output);

// The only symbol of libslipway-simgrid.so (load_engine.h), which holds SimGrid and what uses it. Throws
// std::runtime_error on a deadlock.
extern "C" RunEngine slipway_run_engine;

}  // namespace slipway::sim
