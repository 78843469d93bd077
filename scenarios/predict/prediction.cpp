#include "scenarios/predict/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/machine/degradation.h"
#include "models/model/megatron_flops.h"
#include "scenarios/language/quantity.h"
#include "scenarios/predict/beside.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/filling.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/training_words.h"
#include "schedules/time/durations.h"

namespace slipway::scenarios {

std::vector<StageMemory> stage_memory(const PreparedStep& prepared, const Timeline& timeline,
                                      const PeriodicTimeline* periodic) {
  const std::vector<RankMemory> ranks = memory_timeline(prepared.graph, timeline, periodic);
  const std::vector<double> capacities = memory_capacities(prepared.scenario);
  std::vector<StageMemory> stages(prepared.scenario.step.layout.pipeline);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const int stage = coordinates_of(prepared.scenario.step.layout, static_cast<int>(rank)).pipeline;
    StageMemory& fullest = stages[stage];
    // Compares products, because a capacity may be 0.
    if (fullest.capacity > 0 && ranks[rank].peak * fullest.capacity <= fullest.use.peak * capacities[rank]) continue;
    fullest = {static_cast<int>(rank), ranks[rank], capacities[rank],
               on_machine(prepared.scenario, static_cast<int>(rank))};
  }
  return stages;
}

std::vector<double> rank_peaks(const PreparedStep& prepared, const Timeline& timeline) {
  const std::vector<RankMemory> ranks = memory_timeline(prepared.graph, timeline);
  std::vector<double> peaks;
  for (std::int32_t rank = 0; rank < rank_count(prepared.graph.step.layout); ++rank)
    peaks.push_back(ranks[representative_of(prepared.graph.step.layout, prepared.graph.representatives, rank)].peak);
  return peaks;
}

std::vector<Violation> memory_violations(const PreparedStep& prepared, const Timeline& timeline) {
  return check_memory(memory_timeline(prepared.graph, timeline), memory_capacities(prepared.scenario));
}

std::vector<OnTimeline> on_timeline(const std::vector<StageMemory>& memory) {
  std::vector<OnTimeline> seen;
  for (const StageMemory& stage : memory)
    seen.push_back({stage.use.peak, stage.use.parts[MemoryPart::kept_for_bubble_work]});
  return seen;
}

double megatron_tflops(const Scenario& scenario, double step_time_s) {
  const double flops = megatron_flops_per_token(megatron_count(scenario.step.model)) * tokens_per_step(scenario);
  return flops / step_time_s /
         (rank_count(scenario.step.layout) / static_cast<double>(scenario.cluster.ranks_per_gpu)) / 1e12;
}

std::optional<TrainingCost> training_cost(const Scenario& scenario, double step_time_s) {
  if (scenario.tokens <= 0) return std::nullopt;
  const double seconds = scenario.tokens / tokens_per_step(scenario) * step_time_s;
  TrainingCost training{seconds / day_s,
                        seconds / hour_s * rank_capacity(scenario.cluster) / scenario.cluster.ranks_per_gpu,
                        std::nullopt};
  if (scenario.cluster.price_per_gpu_hour > 0) {
    training.cost = training.gpu_hours * scenario.cluster.price_per_gpu_hour;
  }
  return training;
}

int simulated_ranks(const PreparedStep& prepared) {
  return lowered_count(prepared.graph.step.layout, prepared.graph.representatives);
}

Prediction prediction_of(const SimulatedStep& simulated) {
  const PreparedStep& prepared = simulated.prepared;
  const Simulation& simulation = simulated.simulation;
  Prediction prediction;
  prediction.step =
      metrics_of(prepared.graph, simulation.timeline, peak_flops(prepared.scenario), periodic_of(simulated));
  prediction.step.makespan_s = simulated.makespan_s;
  prediction.repeats_s = simulated.periodic ? simulated.periodic->period_s : 0;
  prediction.tokens_per_s = tokens_per_step(prepared.scenario) / prediction.step.step_time_s;
  prediction.memory = stage_memory(prepared, simulation.timeline, periodic_of(simulated));
  prediction.needs = stage_needs(prepared.scenario, on_timeline(prediction.memory));
  prediction.verdict = verdict_of(prediction.needs);
  prediction.training = training_cost(prepared.scenario, prediction.step.step_time_s);
  prediction.steps = simulation.timeline.steps;
  prediction.units = simulation.units;
  prediction.simulate_wall_s = simulation.wall_s;
  return prediction;
}

namespace {

struct Answer {
  const PreparedStep& prepared;
  const Prediction& prediction;
  const std::optional<TimelineColumns> timeline = {};
};
const PreparedStep& prepared_of_answer(const Answer& answer) { return answer.prepared; }
const Prediction& prediction_in(const Answer& answer) { return answer.prediction; }
const StepMetrics& step_in(const Answer& answer) { return answer.prediction.step; }
const Model& model_in(const Answer& answer) { return answer.prepared.scenario.step.model; }

Description<FillSummary> fill_keys() {
  const auto utilization = [](double Utilization::*value) { return of(&FillSummary::utilization, value); };
  return Description<FillSummary>()
      .key("fill", "text", "bubble work; present with schedule.fill or run.optimizer kfac", &FillSummary::name)
      .key("refresh_steps", "count", "steps between two refreshes, the simulated window; present with fill",
           &FillSummary::steps)
      .key("unfilled_step_time_s", "s", "a step without bubble work and contention; present with fill",
           &FillSummary::unfilled_step_s)
      .key("utilization_before", "0..1",
           "of the pipeline's time (a step without preconditioning and optimizer): compute, mean over ranks, "
           "without filling; present with fill",
           utilization(&Utilization::before))
      .key("utilization", "0..1", "the same, filled; present with fill", utilization(&Utilization::after))
      .key("utilization_ceiling", "0..1",
           "the same, if all of it fitted in the fewest steps whose bubbles are large enough; utilization is above "
           "it only where work runs behind the window (behind_s), which makes steps longer and fuller; present with "
           "fill",
           utilization(&Utilization::ceiling))
      .key("utilization_own_cycles", "0..1",
           "the same, if every rank refreshed after the steps that it needs itself, mean over ranks; present with "
           "fill",
           utilization(&Utilization::own_cycles))
      .key("behind_s", "s",
           "of a window: work that found no gap and runs behind it, mean over ranks; present with fill",
           &FillSummary::behind_s);
}

// A pipeline rank as the memory table shows it.
struct StageRow {
  int stage = 0;
  const StageMemory& memory;
  const StageNeed* need = nullptr;  // null: judged by the timeline alone

  double part(MemoryPart which) const { return memory.use.parts[which]; }
  bool fits() const { return need ? need->fits() : memory.fits(); }
};

std::vector<StageRow> stage_rows(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs) {
  std::vector<StageRow> rows;
  for (std::size_t stage = 0; stage < memory.size(); ++stage)
    rows.push_back({static_cast<int>(stage), memory[stage], needs.empty() ? nullptr : &needs[stage]});
  return rows;
}

std::vector<StageRow> rows_in(const Answer& answer) {
  return stage_rows(answer.prediction.memory, answer.prediction.needs);
}

// Unreduced gradients and gathered weights live as long as activations, and are shown where there are any.
Description<StageRow> stage_keys() {
  const auto fixed = [](double StaticBytes::*part) {
    return [part](const StageRow& row) { return readable_bytes(row.memory.use.fixed.*part); };
  };
  const auto some = [](MemoryPart part) {
    return [part](const StageRow& row) { return row.part(part) > 0 ? readable_bytes(row.part(part)) : "-"; };
  };
  return Description<StageRow>()
      .only_column("pipeline rank",
                   [](const StageRow& row) { return fmt::format("{} (rank {})", row.stage, row.memory.rank); })
      .key("peak_memory_bytes", "bytes", "list, one per pipeline rank: peak of its fullest rank",
           whole([](const StageRow& row) { return row.memory.use.peak; }))
      .column("peak", readable_bytes)
      .only_column("weights", fixed(&StaticBytes::weights))
      .only_column("gradients", fixed(&StaticBytes::gradients))
      .only_column("optimizer", fixed(&StaticBytes::optimizer))
      .only_column("activations",
                   [](const StageRow& row) {
                     return readable_bytes(row.memory.use.activations_peak - row.part(MemoryPart::gradient_buckets) -
                                           row.part(MemoryPart::gathered_weights));
                   })
      .only_column("unreduced gradients", some(MemoryPart::gradient_buckets))
      .if_any()
      .only_column("gathered weights", some(MemoryPart::gathered_weights))
      .if_any()
      .only_column("needs", [](const StageRow& row) { return row.need ? readable_bytes(row.need->odds.bytes) : "-"; })
      .if_any()
      .key("memory_capacity_bytes", "bytes", "list, one per pipeline rank: memory of that rank's machine",
           whole([](const StageRow& row) { return row.memory.capacity; }))
      .wide_column("of a GPU's",
                   [](const StageRow& row) { return readable_bytes(row.memory.capacity) + row.memory.on; })
      .only_column("fits", [](const StageRow& row) { return yes_no(row.fits()); })
      .key("peak_task", "text", "list, one per pipeline rank: label of the task during which the peak occurs",
           [](const StageRow& row) { return row.memory.use.peak_task; })
      .column("peaks in")
      .key(
          "needed_memory_bytes", "bytes",
          "list, one per pipeline rank: median of what it needs, the larger of the timeline's peak and the estimate of "
          "`slipway memory`",
          [](const StageRow& row) {
            return row.need ? std::optional(std::llround(row.need->odds.bytes)) : std::nullopt;
          })
      .else_null()
      .key("needed_memory_least_bytes", "bytes", "list, one per pipeline rank: 5 % of needs are below it",
           [](const StageRow& row) {
             return row.need ? std::optional(std::llround(row.need->odds.least())) : std::nullopt;
           })
      .else_null()
      .key("needed_memory_most_bytes", "bytes", "list, one per pipeline rank: 5 % of needs are above it",
           [](const StageRow& row) {
             return row.need ? std::optional(std::llround(row.need->odds.most())) : std::nullopt;
           })
      .else_null();
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "name of the scenario", [](const Answer& a) { return a.prepared.scenario.name; })
          .key("step_time_s", "s", "start of the last simulated step minus start of the one before, slowest rank",
               of(step_in, &StepMetrics::step_time_s))
          .column("step time", readable_seconds)
          .only_column("90 % interval",
                       [](const Answer& a) {
                         return a.prediction.interval ? interval_text(*a.prediction.interval) : std::string();
                       })
          .if_any()
          .include(interval_keys(), of(prediction_in, &Prediction::interval))
          .key("makespan_s", "s", "first start to last end of one isolated step (with fill: of one window)",
               of(step_in, &StepMetrics::makespan_s))
          .key("mfu", "0..1",
               "model FLOPs (6N + 12Lhs per token, N without the experts that a token does not go through, no "
               "recompute) per step over what the ranks' peak allows; 0 where a peak is unknown, or "
               "cluster.block_times leaves a part of the model free",
               of(step_in, &StepMetrics::mfu))
          .column("MFU", [](double mfu) { return mfu > 0 ? readable_share(mfu) : "-"; })
          .key("megatron_tflops_per_gpu", "TFLOP/s",
               "TFLOP/s per GPU as Megatron-LM prints it, by its own count of FLOPs: half of the causal attention, "
               "experts that a token goes through, logits; no router, no recompute",
               [](const Answer& a) { return megatron_tflops(a.prepared.scenario, step_in(a).step_time_s); })
          .key("tokens_per_s", "1/s", "global batch x sequence / step_time_s",
               of(prediction_in, &Prediction::tokens_per_s))
          .column("tokens/s", readable_count)
          .key("compute_share", "0..1", "of the step: compute lanes busy, mean over ranks",
               of(step_in, &StepMetrics::compute_share))
          .key("exposed_comm_share", "0..1",
               "of the step: compute idle while communication that it needs runs or queues, mean over ranks",
               of(step_in, &StepMetrics::exposed_comm_share))
          .key("bubble_share", "0..1", "of the step: every other idle time, mean over ranks",
               of(step_in, &StepMetrics::bubble_share))
          .key("exposed_comm_s", "s", "exposed communication of one step, mean over ranks",
               of(step_in, &StepMetrics::exposed_comm_s))
          .lists(rows_in, stage_keys())
          .key("fit_probability", "0..1", "of fitting, on the rank that is least likely to",
               [](const Answer& a) { return a.prediction.verdict.probability; })
          .key("fits", "bool", "more likely than not, on every rank", of(prediction_in, &Prediction::fits))
          .column("fits", yes_no)
          .key("fits_cautious", "bool", "with a probability of at least 99 %",
               [](const Answer& a) { return a.prediction.verdict.fits_cautious; })
          .key("ranks", "count", "GPUs (or CPU ranks) of the layout",
               [](const Answer& a) { return rank_count(a.prepared.scenario.step.layout); })
          .key("simulated_ranks", "count", "simulated ranks; each other rank is identical to one of them",
               of(prepared_of_answer, simulated_ranks))
          .key("micro_batches", "count", "per pipeline and step", of(prepared_of_answer, micro_batches_of))
          .key("simulated_micro_batches", "count", "simulated micro-batches; the others repeat them",
               [](const Answer& a) { return a.prepared.graph.micro_batches; })
          .key("parameters", "count", "trainable parameters of the model",
               [](const Answer& a) { return parameter_count(model_in(a)); })
          .key("active_parameters", "count",
               "of these: without the experts that a token does not go through; present with model.experts",
               of(model_in, active_parameter_count))
          .when(of(model_in, has_experts))
          .key("tasks", "count", "tasks of simulated ranks in the graph of one step (with fill: of one window)",
               [](const Answer& a) { return a.prepared.graph.tasks.size(); })
          .key("simulated_units", "count", "these tasks as simulated: a chain simulated as one task counts once",
               of(prediction_in, &Prediction::units))
          .key("steps", "count", "steps (with fill: windows) simulated back to back",
               of(prediction_in, &Prediction::steps))
          .key("simulate_wall_s", "s", "time that the simulator's event loop took",
               of(prediction_in, &Prediction::simulate_wall_s))
          .include(fill_keys(), of(prepared_of_answer, &PreparedStep::filling))
          .include(degradation_cost_keys(), of(prediction_in, &Prediction::degradation))
          .include(skew_cost_keys(), of(prediction_in, &Prediction::skew))
          .include(training_cost_keys(), of(prediction_in, &Prediction::training))
          .include(basis_keys(), of(prediction_in, &Prediction::basis))
          .object(
              "timeline", "tasks of the last simulated step, as columns of one length; present with --timeline",
              [](const Answer& a) -> const std::optional<TimelineColumns>& { return a.timeline; }, timeline_keys());
  return description;
}

// Unset where all GPUs and ports are sound, and with bubble work, which was placed for the slow ones.
std::optional<DegradationCost> cost_of_degradation(const SimulatedStep& step, double step_s, const StepOptions& options,
                                                   const StepWorkers& work) {
  const PreparedStep& prepared = step.prepared;
  if (!is_degraded(prepared.scenario.cluster) || prepared.filling) return std::nullopt;
  SimulationOptions how;
  how.chains = options.chains;
  const PricedCluster sound = healthy(prepared.cluster);
  const Durations durations = durations_of(prepared.graph, sound);
  const std::vector<Simulation> without =
      work.simulate({prepared, sound, durations, "simulating the healthy cluster"}, how, {options.steps});
  return degradation_cost(prepared, step_s, step.simulation.timeline, without.front().timeline);
}

// Unset where routing is balanced, or all experts are on every rank.
std::optional<SkewCost> cost_of_skew(const Scenario& scenario, double step_s, const StepOptions& options,
                                     const StepWorkers& work) {
  if (scenario.step.routing.skew == 0 || !dispatches_tokens(scenario.step)) return std::nullopt;
  Scenario balanced = scenario;
  balanced.step.routing.skew = 0;
  StepOptions how = options;
  how.makespan = false;
  const SimulatedStep step = simulated_step(balanced, how, work);
  const double balanced_s = step_time_of(step.prepared.graph, step.simulation.timeline, periodic_of(step));
  return SkewCost{mean_largest_load(scenario.step), step_s - balanced_s};
}

}  // namespace

const Description<TrainingCost>& training_cost_keys() {
  static const Description<TrainingCost> description =
      Description<TrainingCost>()
          .key("days", "days", "duration of the training; present with run.tokens", &TrainingCost::days)
          .key("gpu_hours", "h", "GPUs x duration of the training; present with run.tokens", &TrainingCost::gpu_hours)
          .key("cost", "currency", "gpu_hours x cluster.price_per_gpu_hour; present with run.tokens and a price > 0",
               &TrainingCost::cost);
  return description;
}

std::vector<AnswerKey> prediction_keys() { return description().keys(); }

std::string json_text(const PreparedStep& prepared, const Prediction& prediction,
                      std::optional<TimelineColumns> timeline) {
  return description().text({prepared, prediction, std::move(timeline)});
}

std::vector<std::vector<std::string>> prediction_rows(const PreparedStep& prepared, const Prediction& prediction) {
  return description().table(std::vector<Answer>{{prepared, prediction}});
}

std::vector<std::vector<std::string>> memory_rows(const std::vector<StageMemory>& memory,
                                                  const std::vector<StageNeed>& needs) {
  return stage_keys().table(stage_rows(memory, needs));
}

double mean_largest_load(const Step& step) {
  double sum = 0;
  int layers = 0, index = 0;
  for (const Block& block : blocks_of(step.model)) {
    if (block.experts > 0) ++layers, sum += largest_load(block, step.routing, index, step.layout.expert);
    ++index;
  }
  return layers > 0 ? sum / layers : 1;
}

const Description<SkewCost>& skew_cost_keys() {
  static const Description<SkewCost> description =
      Description<SkewCost>()
          .key("routing_load", "1",
               "rows of the rank with the most of them, by those of balanced routing, on average over layers; present "
               "with run.routing_skew",
               &SkewCost::load)
          .key("routing_skew_s", "s", "what that costs a step, against balanced routing; present with run.routing_skew",
               &SkewCost::cost_s);
  return description;
}

PredictedStep predict(const Scenario& scenario, const StepOptions& options, const StepWorkers& work) {
  PredictedStep answer{simulated_step(scenario, options, work), {}};
  Prediction& prediction = answer.prediction = prediction_of(answer.step);
  const double step_s = prediction.step.step_time_s;
  prediction.basis = basis_of(scenario);
  prediction.interval = step_interval(answer.step.prepared, step_s, prediction.basis.outside.size());
  prediction.degradation = cost_of_degradation(answer.step, step_s, options, work);
  prediction.skew = cost_of_skew(scenario, step_s, options, work);
  return answer;
}

}  // namespace slipway::scenarios
