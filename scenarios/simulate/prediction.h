// What `slipway simulate` answers: the figures of a simulated step, as numbers, as a report for people and
// as JSON. Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/basis/basis.h"
#include "scenarios/simulate/straggler_report.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/step/verdict.h"
#include "schedules/check/check.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/metrics.h"
#include "sim/simulate.h"

namespace slipway::scenarios {

// Memory of the fullest rank of one pipeline rank.
struct StageMemory {
  int rank = 0;
  RankMemory use;
  double capacity = 0;
  std::string on;  // its machine, where there are several (on_machine)
  bool fits() const { return schedules::fits(use, capacity); }
};

// A whole training of run.tokens tokens, at so many seconds a step; nothing where the scenario gives no tokens.
struct TrainingCost {
  double days = 0, gpu_hours = 0;
  std::optional<double> cost;  // with a price only
};

std::optional<TrainingCost> training_cost(const Scenario& scenario, double step_time_s);
const Description<TrainingCost>& training_cost_keys();

struct Prediction {
  StepMetrics step;
  double tokens_per_s = 0;
  std::vector<StageMemory> memory;  // per pipeline rank
  std::vector<StageNeed> needs;     // per pipeline rank: the largest of timeline, closed form, estimate
  Verdict verdict;
  bool fits() const { return verdict.fits; }
  std::optional<TrainingCost> training;
  Basis basis;
  std::optional<StragglerCost> stragglers;  // of a cluster with slow GPUs or ports
  int steps = 0;
  std::uint64_t units = 0;  // of a step: its tasks, runs that were simulated as one counted once
  double repeats_s = 0;     // of a shortened step: its period
  double simulate_wall_s = 0;
};

// Ranks that have tasks: all, or those that stand for others.
int simulated_ranks(const Plan& plan);

Prediction prediction_of(const SimulatedStep& step);
// Per pipeline rank, the rank that needs the largest share of its memory. From the timeline's first step.
std::vector<StageMemory> stage_memory(const Plan& plan, const Timeline& timeline, const SteadyState* steady = nullptr);

// The most that each rank of the layout needs at once; that of its stand-in where the graph is folded. For traces.
std::vector<double> rank_peaks(const Plan& plan, const Timeline& timeline);

// I7: a violation per rank that needs more than its machine has (schedules/check/check.h).
std::vector<Violation> memory_violations(const Plan& plan, const Timeline& timeline);

std::string report_text(const Plan& plan, const Prediction& prediction);
// `needs`: with what each pipeline rank needs, and whether that fits; empty: whether the timeline does.
std::string memory_text(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs = {},
                        double usable_share = 1);
// What the timeline of each pipeline rank tells the verdict.
std::vector<OnTimeline> on_timeline(const std::vector<StageMemory>& memory);
// The first pipeline rank's memory term by term beside the closed form of Fujii et al. 2024; empty where
// that says nothing (a model that is no plain Llama, a schedule that is not 1F1B).
std::string closed_form_text(const Plan& plan, const StageMemory& first);
std::string json_text(const Plan& plan, const Prediction& prediction);

}  // namespace slipway::scenarios
