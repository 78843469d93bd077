// From a scenario file to a graph that is ready to run. Every command except `list` and `compare` begins with it.
//
//   load ──► lower ──► durations ──► global order ──► invariants I1..I6, I8, I9 [──► filled bubbles, I10..I12]
//
// A mistake of the user ends in UsageError (exit status 2) before anything is written or started. A broken invariant is
// a defect of Slipway and ends in std::runtime_error with the grid.
// Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/machine/priced_cluster.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/graph_size.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/time/durations.h"
#include "schedules/time/periodic.h"

namespace slipway::scenarios {

struct PreparedStep {
  Scenario scenario;
  PricedCluster cluster;  // the scenario's, which all prices of this step are of
  TaskGraph graph;
  Durations durations;
  std::optional<FillSummary> filling;       // set: the graph is a window
  std::optional<PeriodicActions> periodic;  // set: the graph has fewer micro-batches
  std::string why_all_ranks;                // why no rank could be left out, where that was possible in principle
};

// Parts that the graph may leave out. Graphs for execution or for pictures of all ranks leave out nothing.
struct PrepareOptions {
  bool representatives_only = false;  // only representative ranks get tasks (representatives_of)
  int patience = 0;  // > 0: leaves out most micro-batches where the schedule repeats (schedules/time/periodic.h)
  std::function<void(const GraphSize& size)> on_size = {};  // called before a large graph is begun
};

// The rule book has passed the scenario's step: at loading, or where a search chose it.
PreparedStep prepared_step(Scenario scenario, const PrepareOptions& options = {});
// The same without checks and bubble work, for a search over layouts of kinds that tests have checked. Throws
// std::invalid_argument where prepared_step throws UsageError.
PreparedStep prepared_unchecked(Scenario scenario, const PrepareOptions& options = {});
// Throws UsageError with the way to measure, where a machine's profile has no rates yet. prepared_step calls this
// first.
void refuse_uncalibrated(const Scenario& scenario);

// Sum over the layout's ranks of dense FLOP/s in the scenario's dtype. 0 when a machine has no value, and with a block
// table, which leaves a part of the model free.
double peak_flops(const Scenario& scenario);
// Bytes of memory of each rank's machine.
std::vector<double> memory_capacities(const Scenario& scenario);
// " of h100-80gb" after a rank's GPU memory on clusters with several machines; otherwise empty.
std::string on_machine(const Scenario& scenario, int rank);
// Micro-batches per pipeline and step, including those that the graph leaves out.
int micro_batches_of(const PreparedStep& prepared);
double tokens_per_step(const Scenario& scenario);
// "llama-8b, sequence 8192, on 64 x h100-80gb: tensor 8, pipeline 4, data 2; 1f1b, 16 micro-batches of 1 sequence".
std::string headline(const PreparedStep& prepared);

// "64 x h100-80gb + 32 x a100-80gb".
std::string machines_text(const Cluster& cluster);
// "; as nanotron trains", "; this machine has no measured kernels: ..."; empty without a named trainer.
std::string trainer_text(const Scenario& scenario);

}  // namespace slipway::scenarios
