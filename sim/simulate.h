// When will it happen: the task graph on SimGrid. No SimGrid type leaves sim/.
//
//   graph + cluster ─► plan (fidelity.h), what is simulated as one (chains.h)
//                                      └──► forked child (isolate.h) ─┬─ frontier.h  what may start
//                                                                     ├─ calendar.h  when timed tasks end
//                                                                     ├─ compute.h   speeds that change
//                                                                     └─ flows.h     SimGrid: shared links
//
// Every lane runs its tasks in the stored global order, one at a time. A task starts when its predecessors
// are done (those carried over from the previous step included) and it is at the head of the lanes of all
// its members. Copies of the step run back to back without a barrier between them.
//
// Exact against closed forms: a transfer takes latency + bytes/bandwidth, two transfers through one port
// take twice as long, opposite directions do not disturb each other (tests/sim/network_test.cpp). Without
// contention the result is the list replay's (tests/sim/replay_test.cpp). The same input gives the same
// bytes.
//
// SimGrid allows one engine per process, so each call simulates in a forked child; calls may follow one
// another or run at the same time in different threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/machine/machine.h"
#include "schedules/time/order.h"
#include "sim/partial.h"

namespace slipway::sim {

// closed_form: every collective is a duration. flows: ring collectives become flows on the links.
// automatic: flows where a port can be shared, closed form otherwise (the rule is in fidelity.h).
// Transfers are flows always.
enum class CollectiveFidelity : std::uint8_t { automatic, closed_form, flows };

struct SimulationOptions {
  int steps = 3;  // back to back; the steady period is taken from the last two starts
  CollectiveFidelity collectives = CollectiveFidelity::automatic;
  bool chains = true;  // runs of tasks whose middle nobody sees are simulated as one (chains.h), with the same result
  std::function<void(double done_share)> progress;  // called now and then, by the caller's thread; may be empty
  std::function<bool()> interrupted;                // asked as often, by any thread; may be empty
};

struct Simulation {
  Timeline timeline;  // all steps
  // Latest start over the members of each communication task instance = timeline.start; per-member
  // queueing is waiting and is derived when a trace is made.
  std::uint64_t tasks = 0;  // task instances simulated
  std::uint64_t units = 0;  // of one step: its tasks, each chain counted once
  std::uint64_t flows = 0;  // SimGrid flows of all steps (a ring collective is several)
  double wall_s = 0;        // host seconds of the event loop
};

// Throws std::invalid_argument (cluster too small, no fabric) before anything is simulated, and
// std::runtime_error with the stuck head of every lane, and their place in the grid, on a simulated deadlock;
// SimulationInterrupted (partial.h) when it was told to stop.
Simulation simulate(const TaskGraph& graph, const Cluster& cluster, const SimulationOptions& options);

// The same with given seconds per task instead of durations_of(graph, cluster): used for every compute task
// and for every communication that is not a flow.
Simulation simulate(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                    const SimulationOptions& options);

// The same for each of several numbers of steps: planned once and, where cores allow, simulated at the same time.
// options.steps is not read; progress is that of the first.
std::vector<Simulation> simulate_each(const TaskGraph& graph, const Cluster& cluster, const Durations& durations,
                                      const SimulationOptions& options, const std::vector<int>& steps);

// The same of a plan that was made before (sim/fidelity.h); options.collectives is not read.
struct SimulationPlan;
Simulation simulate(const TaskGraph& graph, const Cluster& cluster, SimulationPlan plan,
                    const SimulationOptions& options);

}  // namespace slipway::sim
