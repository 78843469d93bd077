// The answer of `slipway simulate`: the numbers of a simulated step as data and as JSON. Guarded by
// tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/basis.h"
#include "scenarios/predict/degradation_report.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/predict/step_interval.h"
#include "scenarios/predict/timeline_columns.h"
#include "scenarios/predict/verdict.h"
#include "schedules/check/check.h"
#include "schedules/memory/memory_timeline.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"
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

// A whole training of run.tokens tokens at this step time; unset where the scenario gives no tokens.
struct TrainingCost {
  double days = 0, gpu_hours = 0;
  std::optional<double> cost;  // only with a price
};

std::optional<TrainingCost> training_cost(const Scenario& scenario, double step_time_s);
const Description<TrainingCost>& training_cost_keys();

// The cost of uneven routing: the rank with the most rows decides (models/model/routing.h).
struct SkewCost {
  double load = 1;    // its rows by those of balanced routing, on average over the layers with experts
  double cost_s = 0;  // of a step, against balanced routing
};
double mean_largest_load(const Step& step);
const Description<SkewCost>& skew_cost_keys();

struct Prediction {
  StepMetrics step;
  std::optional<StepInterval> interval;  // of the step time; where fitted constants price it
  double tokens_per_s = 0;
  std::vector<StageMemory> memory;  // per pipeline rank
  std::vector<StageNeed> needs;     // per pipeline rank: the larger of timeline and estimate, with its odds
  Verdict verdict;
  bool fits() const { return verdict.fits; }
  std::optional<TrainingCost> training;
  Basis basis;
  std::optional<DegradationCost> degradation;  // for a cluster with slow GPUs or ports
  std::optional<SkewCost> skew;                // with run.routing_skew
  int steps = 0;
  std::uint64_t units = 0;  // tasks of a step, with a chain simulated as one counted once
  double repeats_s = 0;     // the period of a periodic step
  double simulate_wall_s = 0;
};

// Ranks with tasks: all, or the representative ranks.
int simulated_ranks(const PreparedStep& prepared);

// What the simulation of the step shows, without basis, interval and the costs of degradation and skew.
Prediction prediction_of(const SimulatedStep& step);
// The whole answer: the scenario's step simulated, with what it rests on, its interval, and what slow GPUs and uneven
// routing cost, for which it is simulated again without them.
struct PredictedStep {
  SimulatedStep step;
  Prediction prediction;
};
PredictedStep predict(const Scenario& scenario, const StepOptions& options, const StepWorkers& work = plain_workers());
// Per pipeline rank, the rank that needs the largest share of its memory. Uses the timeline's first step.
std::vector<StageMemory> stage_memory(const PreparedStep& prepared, const Timeline& timeline,
                                      const PeriodicTimeline* periodic = nullptr);

// The peak of each rank of the layout, or of its representative rank. For traces.
std::vector<double> rank_peaks(const PreparedStep& prepared, const Timeline& timeline);

// I7: a violation per rank that needs more memory than its machine has (schedules/check/check.h).
std::vector<Violation> memory_violations(const PreparedStep& prepared, const Timeline& timeline);

// Cells of tables, headings first: of the step's figures, and of memory. `needs`: adds the need of each pipeline rank and
// whether it fits. Empty: judges the timeline alone.
std::vector<std::vector<std::string>> prediction_rows(const PreparedStep& prepared, const Prediction& prediction);
std::vector<std::vector<std::string>> memory_rows(const std::vector<StageMemory>& memory,
                                                  const std::vector<StageNeed>& needs);
// TFLOP/s per GPU as Megatron-LM counts (models/model/megatron_flops.h).
double megatron_tflops(const Scenario& scenario, double step_time_s);
// The timeline's input to the verdict, per pipeline rank.
std::vector<OnTimeline> on_timeline(const std::vector<StageMemory>& memory);
std::string json_text(const PreparedStep& prepared, const Prediction& prediction,
                      std::optional<TimelineColumns> timeline = {});
std::vector<AnswerKey> prediction_keys();  // of that JSON

}  // namespace slipway::scenarios
