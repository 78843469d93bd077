#include "scenarios/validation/prediction.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/json_summary.h"
#include "scenarios/language/quantity.h"

namespace slipway {

std::vector<StageMemory> stage_memory(const Plan& plan, const Timeline& timeline, const SteadyState* steady) {
  const std::vector<RankMemory> ranks = memory_timeline(plan.graph, timeline, steady);
  const std::vector<double> capacities = memory_capacities(plan.scenario);
  std::vector<StageMemory> stages(static_cast<std::size_t>(plan.scenario.layout.pipeline));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const int stage = coordinates_of(plan.scenario.layout, static_cast<int>(rank)).pipeline;
    StageMemory& fullest = stages[static_cast<std::size_t>(stage)];
    // Compared as products: a capacity may be 0.
    if (fullest.capacity > 0 && ranks[rank].peak * fullest.capacity <= fullest.use.peak * capacities[rank])
      continue;
    fullest = {static_cast<int>(rank), ranks[rank], capacities[rank], on_machine(plan.scenario, static_cast<int>(rank))};
  }
  return stages;
}

std::vector<double> rank_peaks(const Plan& plan, const Timeline& timeline) {
  const std::vector<RankMemory> ranks = memory_timeline(plan.graph, timeline);
  std::vector<double> peaks;
  for (std::int32_t rank = 0; rank < rank_count(plan.graph.layout); ++rank)
    peaks.push_back(ranks[static_cast<std::size_t>(stand_in(plan.graph.layout, plan.graph.folding, rank))].peak);
  return peaks;
}

std::vector<Violation> memory_violations(const Plan& plan, const Timeline& timeline) {
  return check_memory(memory_timeline(plan.graph, timeline), memory_capacities(plan.scenario));
}

std::vector<OnTimeline> on_timeline(const std::vector<StageMemory>& memory) {
  std::vector<OnTimeline> seen;
  for (const StageMemory& stage : memory)
    seen.push_back({stage.use.peak, stage.use.parts[MemoryPart::kept_for_fillers]});
  return seen;
}

std::optional<TrainingCost> training_cost(const Scenario& scenario, double step_time_s) {
  if (scenario.tokens <= 0) return std::nullopt;
  const double seconds = scenario.tokens / tokens_per_step(scenario) * step_time_s;
  TrainingCost training{seconds / day_s, seconds / hour_s * rank_capacity(scenario.cluster) / scenario.cluster.ranks_per_gpu,
                        std::nullopt};
  if (scenario.cluster.price_per_gpu_hour > 0) {
    training.cost = training.gpu_hours * scenario.cluster.price_per_gpu_hour;
  }
  return training;
}

int simulated_ranks(const Plan& plan) { return lowered_count(plan.graph.layout, plan.graph.folding); }

Prediction prediction_of(const SimulatedStep& simulated) {
  const Plan& plan = simulated.plan;
  const Simulation& simulation = simulated.simulation;
  Prediction prediction;
  prediction.step = metrics_of(plan.graph, simulation.timeline, peak_flops(plan.scenario), steady_of(simulated));
  prediction.step.makespan_s = simulated.makespan_s;
  prediction.repeats_s = simulated.steady ? simulated.steady->period_s : 0;
  prediction.tokens_per_s = tokens_per_step(plan.scenario) / prediction.step.step_time_s;
  prediction.memory = stage_memory(plan, simulation.timeline, steady_of(simulated));
  prediction.needs = stage_needs(plan.scenario, on_timeline(prediction.memory));
  prediction.verdict = verdict_of(plan.scenario, prediction.needs);
  prediction.training = training_cost(plan.scenario, prediction.step.step_time_s);
  prediction.steps = simulation.timeline.steps;
  prediction.units = simulation.units;
  prediction.simulate_wall_s = simulation.wall_s;
  return prediction;
}

std::string json_text(const Plan& plan, const Prediction& prediction) {
  JsonSummary json(simulate_json_keys());
  const StepMetrics& step = prediction.step;
  json.set("scenario", plan.scenario.name);
  json.set("step_time_s", step.step_time_s);
  json.set("makespan_s", step.makespan_s);
  json.set("mfu", step.mfu);
  json.set("tokens_per_s", prediction.tokens_per_s);
  json.set("compute_share", step.compute_share);
  json.set("exposed_comm_share", step.exposed_comm_share);
  json.set("bubble_share", step.bubble_share);
  json.set("exposed_comm_s", step.exposed_comm_s);
  std::vector<std::int64_t> peaks, capacities, needed;
  std::vector<std::string> peak_tasks;
  for (const StageMemory& stage : prediction.memory) {
    peaks.push_back(std::llround(stage.use.peak));
    capacities.push_back(std::llround(stage.capacity));
    peak_tasks.push_back(stage.use.peak_task);
  }
  for (const StageNeed& need : prediction.needs) needed.push_back(std::llround(need.bytes));
  json.set("peak_memory_bytes", peaks);
  json.set("memory_capacity_bytes", capacities);
  json.set("peak_task", peak_tasks);
  json.set("needed_memory_bytes", needed);
  json.set("fits", prediction.fits());
  json.set("fits_cautious", prediction.verdict.fits_cautious);
  set_basis_keys(json, prediction.basis);
  json.set("ranks", rank_count(plan.scenario.layout));
  json.set("simulated_ranks", simulated_ranks(plan));
  json.set("micro_batches", micro_batches_of(plan));
  json.set("simulated_micro_batches", plan.graph.micro_batches);
  json.set("parameters", parameter_count(plan.scenario.model));
  if (has_experts(plan.scenario.model)) json.set("active_parameters", active_parameter_count(plan.scenario.model));
  json.set("tasks", static_cast<std::uint64_t>(plan.graph.tasks.size()));
  json.set("simulated_units", prediction.units);
  json.set("steps", prediction.steps);
  json.set("simulate_wall_s", prediction.simulate_wall_s);
  if (plan.filling) {
    json.set("fill", plan.filling->name);
    json.set("refresh_steps", plan.filling->steps);
    json.set("unfilled_step_time_s", plan.filling->unfilled_step_s);
    json.set("utilization_before", plan.filling->utilization.before);
    json.set("utilization", plan.filling->utilization.after);
    json.set("utilization_ceiling", plan.filling->utilization.ceiling);
    json.set("utilization_own_cycles", plan.filling->utilization.own_cycles);
    json.set("behind_s", plan.filling->behind_s);
  }
  if (const auto& cost = prediction.stragglers) {
    std::vector<double> waits, healthy_waits;
    for (const StageWaiting& stage : cost->stages) {
      waits.push_back(stage.waits_s);
      healthy_waits.push_back(stage.healthy_waits_s);
    }
    json.set("stragglers_s", cost->lost_s());
    json.set("healthy_step_time_s", cost->healthy_step_s);
    json.set("waiting_s", waits);
    json.set("healthy_waiting_s", healthy_waits);
  }
  if (prediction.training) {
    json.set("days", prediction.training->days);
    json.set("gpu_hours", prediction.training->gpu_hours);
    if (prediction.training->cost) json.set("cost", *prediction.training->cost);
  }
  return json.text();
}

}  // namespace slipway
