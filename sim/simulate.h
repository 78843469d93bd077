// Simulates the task graph on SimGrid. No SimGrid type leaves sim/.
//
//   graph + cluster ─► plan (fidelity.h), units (chains.h)
//                                      └──► forked child (isolate.h) ─┬─ frontier.h  what may start
//                                                                     ├─ calendar.h  when timed tasks end
//                                                                     ├─ compute.h   speeds that change
//                                                                     └─ flows.h     SimGrid: shared links
//
// Every lane runs its tasks in the stored global order, one at a time. A task starts when its predecessors are done
// (also those of the previous step), it is at the head of the lanes of all its members, and their hosts have issued it
// (schedules/time/host_issue.h). Copies of the step run back to back without a barrier between them.
//
// Against closed forms it is exact: a transfer takes latency + bytes/bandwidth, two transfers through one port take
// twice as long, opposite directions do not disturb each other (tests/sim/network_test.cpp). Without contention the
// result is the list replay's (tests/sim/replay_test.cpp, tests/sim/trained_step_test.cpp). The same input gives the
// same bytes.
//
// SimGrid allows one engine per process, so each call simulates in a forked child. Calls may follow one another or run
// at the same time in different threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "schedules/time/durations.h"
#include "schedules/time/replay.h"
#include "sim/partial.h"

namespace slipway::sim {

// closed_form: every collective is a duration. flows: ring collectives become flows on the links.
// automatic: flows where a port can be shared, closed form otherwise (fidelity.h has the rule).
// Transfers are always flows.
enum class CollectiveFidelity : std::uint8_t { automatic, closed_form, flows };

struct SimulationOptions {
  int steps = 3;  // back to back; the period is taken from the last two starts
  CollectiveFidelity collectives = CollectiveFidelity::automatic;
  bool chains = true;  // tasks of a chain (chains.h) are simulated as one, with the same result
  std::function<void(double done_share)> progress;  // called now and then, by the caller's thread; may be empty
  std::function<bool()> interrupted;                // called as often, by any thread; true stops; may be empty
};

struct Simulation {
  Timeline timeline;  // all steps
  // timeline.start of a communication task instance is the latest start over its members. Each member's waiting is
  // derived when a trace is made.
  std::uint64_t tasks = 0;  // task instances simulated
  std::uint64_t units = 0;  // of one step: its tasks, each chain counted once
  std::uint64_t flows = 0;  // SimGrid flows of all steps (a ring collective is several)
  double wall_s = 0;        // host seconds of the event loop
};

// Throws std::invalid_argument (cluster too small, no fabric) before it simulates. On a simulated deadlock it throws
// std::runtime_error with the stuck head of every lane and their place in the grid. When interrupted it throws
// SimulationInterrupted (partial.h).
Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, const SimulationOptions& options);

// The same with given seconds per task instead of durations_of(graph, cluster). They are used for every compute task
// and for every communication that is not a flow.
Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                    const SimulationOptions& options);

// The same for each of several numbers of steps: the forms of tasks are made once and, where cores allow, steps are
// simulated at the same time.
// options.steps is not read; `progress` reports the first.
std::vector<Simulation> simulate_each(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                                      const SimulationOptions& options, const std::vector<int>& steps);

// The same for tasks whose forms (sim/fidelity.h) are known; options.collectives is not read.
struct TaskForms;
Simulation simulate(const TaskGraph& graph, const PricedCluster& cluster, TaskForms forms,
                    const SimulationOptions& options);

}  // namespace slipway::sim
