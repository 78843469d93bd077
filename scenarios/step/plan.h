// From a scenario file to a graph that is ready to run: what every command but `list` and `compare` begins
// with.
//
//   load ──► lower ──► durations ──► global order ──► invariants I1..I6, I8, I9 [──► filled bubbles, I10..I12]
//
// A mistake of the user ends in UsageError (exit status 2) before anything is written or started; a broken
// invariant is a defect of Slipway and ends in std::runtime_error with the grid.
// Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/step/filling.h"
#include "schedules/time/periodic.h"

namespace slipway::scenarios {

struct Plan {
  Scenario scenario;
  TaskGraph graph;
  Durations durations;
  std::optional<FillSummary> filling;         // the graph is a window then
  std::optional<ShortenedActions> shortened;  // the graph is of a step with fewer micro-batches then
  std::string unfolded;                       // why no rank could be left out, where some might have been
};

// What the graph leaves out. What is executed, or shown rank by rank, leaves out nothing.
struct PlanOptions {
  bool folded = false;  // only ranks that stand for all others get tasks (folding_of)
  int patience = 0;     // > 0: most micro-batches are left out where the schedule repeats (schedules/time/periodic.h)
};

// `overrides` as for load_scenario. Load errors are listed all at once.
// `option`: which the overrides were given by.
Scenario checked_scenario(const std::string& path, const std::vector<std::string>& overrides,
                          const std::string& option = "--set");
Plan plan_of(Scenario scenario, const PlanOptions& options = {});
// The same without checks and fillers: for a search, whose layouts are of kinds that tests have checked. Throws
// std::invalid_argument where plan_of throws UsageError.
Plan ordered_plan(Scenario scenario, const PlanOptions& options = {});
// Members of a pipeline rank that do the same at the same time (schedules/lower/folding.h); all where work in
// the bubbles, or copies of the model, make them differ.
Folding folding_of(const Scenario& scenario);
// Throws UsageError that says how to measure, where a machine's profile holds no rates yet: times cannot be
// priced on it. plan_of asks this first.
void refuse_uncalibrated(const Scenario& scenario);

// Sum over the layout's ranks of dense FLOP/s in the scenario's dtype; 0 when a machine does not say, and with a
// block table, by which a part of the model is free.
double peak_flops(const Scenario& scenario);
// Bytes of memory of each rank's machine.
std::vector<double> memory_capacities(const Scenario& scenario);
// " of h100-80gb" behind what a rank's GPU has, on clusters with several machines; else nothing.
std::string on_machine(const Scenario& scenario, int rank);
// Per pipeline and step, whatever the graph leaves out.
int micro_batches_of(const Plan& plan);
double tokens_per_step(const Scenario& scenario);
// "llama-8b, sequence 8192, on 64 x h100-80gb: tensor 8, pipeline 4, data 2, zero 1; 1f1b, 16 micro-batches of 1 sequence".
std::string headline(const Plan& plan);

// "64 x h100-80gb + 32 x a100-80gb".
std::string machines_text(const Cluster& cluster);
// "; at the pace of nanotron", "; nobody timed nanotron on this machine: ..."; nothing without a stack.
std::string pace_text(const Scenario& scenario);

}  // namespace slipway::scenarios
