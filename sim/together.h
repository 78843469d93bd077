// Several jobs on one cluster at the same time. Each proceeds as its own tasks allow; they share only links.
//
//   job a   |  step 0  |  step 1  |  step 2  | ...           steps of each back to back, without a barrier;
//   job b   | step 0 | step 1 | step 2 | ...                 only shared links tie one job to the other
//
// The jobs' steps, as often as each shall run, become one graph whose ranks are the GPUs. Which collectives are flows
// is decided over all jobs (fidelity.h); each job has its own message costs. No GPU has two jobs.
// Guarded by tests/sim/together_test.cpp.
#pragma once

#include <span>

#include "models/machine/priced_cluster.h"
#include "schedules/time/durations.h"
#include "schedules/time/replay.h"
#include "sim/simulate.h"

namespace slipway::sim {

struct Job {
  const TaskGraph& graph;        // of all ranks, one step (no window), with an order
  const PricedCluster& cluster;  // the common hardware; gpu_of_rank has the places of this job's ranks
  const Durations& durations;    // of its tasks
  int steps = 3;
};

// Returns one timeline per job, equal to simulate's for its steps. options.steps is not read. `hardware`: its ranks are
// its GPUs, so it has no gpu_of_rank. Throws as simulate does, and std::invalid_argument for a GPU with two ranks.
std::vector<Timeline> simulate_together(const PricedCluster& hardware, std::span<const Job> jobs,
                                        const SimulationOptions& options);

}  // namespace slipway::sim
