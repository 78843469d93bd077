#include "scenarios/simulate/prediction.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/memory/closed_form.h"
#include "scenarios/answers/json_summary.h"
#include "scenarios/answers/readable.h"
#include "scenarios/answers/training_words.h"
#include "scenarios/language/quantity.h"
#include "scenarios/step/filling.h"

namespace slipway::scenarios {

std::vector<StageMemory> stage_memory(const Plan& plan, const Timeline& timeline, const SteadyState* steady) {
  const std::vector<RankMemory> ranks = memory_timeline(plan.graph, timeline, steady);
  const std::vector<double> capacities = memory_capacities(plan.scenario);
  std::vector<StageMemory> stages(plan.scenario.step.layout.pipeline);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const int stage = coordinates_of(plan.scenario.step.layout, static_cast<int>(rank)).pipeline;
    StageMemory& fullest = stages[stage];
    // Compares products, because a capacity may be 0.
    if (fullest.capacity > 0 && ranks[rank].peak * fullest.capacity <= fullest.use.peak * capacities[rank]) continue;
    fullest = {static_cast<int>(rank), ranks[rank], capacities[rank],
               on_machine(plan.scenario, static_cast<int>(rank))};
  }
  return stages;
}

std::vector<double> rank_peaks(const Plan& plan, const Timeline& timeline) {
  const std::vector<RankMemory> ranks = memory_timeline(plan.graph, timeline);
  std::vector<double> peaks;
  for (std::int32_t rank = 0; rank < rank_count(plan.graph.step.layout); ++rank)
    peaks.push_back(ranks[stand_in(plan.graph.step.layout, plan.graph.folding, rank)].peak);
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
  TrainingCost training{seconds / day_s,
                        seconds / hour_s * rank_capacity(scenario.cluster) / scenario.cluster.ranks_per_gpu,
                        std::nullopt};
  if (scenario.cluster.price_per_gpu_hour > 0) {
    training.cost = training.gpu_hours * scenario.cluster.price_per_gpu_hour;
  }
  return training;
}

int simulated_ranks(const Plan& plan) { return lowered_count(plan.graph.step.layout, plan.graph.folding); }

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
  json.set("ranks", rank_count(plan.scenario.step.layout));
  json.set("simulated_ranks", simulated_ranks(plan));
  json.set("micro_batches", micro_batches_of(plan));
  json.set("simulated_micro_batches", plan.graph.micro_batches);
  json.set("parameters", parameter_count(plan.scenario.step.model));
  if (has_experts(plan.scenario.step.model))
    json.set("active_parameters", active_parameter_count(plan.scenario.step.model));
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

namespace {

std::string shares_text(const StepMetrics& step) {
  const auto row = [&](const char* name, double share) {
    return std::vector<std::string>{name, readable_share(share), readable_seconds(share * step.step_time_s)};
  };
  return "Where the time goes (mean over ranks):\n" +
         aligned_table({row("compute", step.compute_share), row("exposed communication", step.exposed_comm_share),
                        row("bubble", step.bubble_share)},
                       "  ");
}

std::string training_text(const Scenario& scenario, const TrainingCost& training) {
  std::string text = fmt::format("Training on {} takes {:.4g} days, {} GPU-hours", whole_training_text(scenario),
                                 training.days, readable_count(training.gpu_hours));
  if (training.cost) {
    text += fmt::format(" and costs {} at {:g} per GPU-hour", readable_count(*training.cost),
                        scenario.cluster.price_per_gpu_hour);
  }
  return text + ".\n\n";
}

// States how many ranks were simulated and that the others are identical.
std::string folding_text(const Plan& plan) {
  const int ranks = rank_count(plan.scenario.step.layout), simulated = simulated_ranks(plan);
  if (!plan.unfolded.empty()) return fmt::format("All {} simulated: {}. ", counted(ranks, "rank"), plan.unfolded);
  if (simulated == ranks) return "";
  return fmt::format("{} simulated as {}: the others do the same at the same time. ", counted(ranks, "rank"),
                     simulated);
}

// States how many micro-batches were simulated, and the period of the others.
std::string repeating_text(const Plan& plan, const Prediction& prediction) {
  if (!plan.shortened) return "";
  return fmt::format("{} of {} simulated: the others repeat these every {}. ", plan.graph.micro_batches,
                     counted(micro_batches_of(plan), "micro-batch"), readable_seconds(prediction.repeats_s));
}

// "80,610 tasks", "80,610 tasks (simulated as 9,000)"
std::string tasks_text(const Plan& plan, const Prediction& prediction) {
  const std::size_t tasks = plan.graph.tasks.size();
  return counted(static_cast<std::int64_t>(tasks), "task") +
         (prediction.units == tasks ? ""
                                    : " (simulated as " + readable_count(static_cast<double>(prediction.units)) + ")");
}

}  // namespace

namespace {

// Parts of the peak that are not activations but live as long.
struct Column {
  const char* name;
  MemoryPart part;
};
constexpr Column columns[] = {{"unreduced gradients", MemoryPart::gradient_buckets},
                              {"gathered weights", MemoryPart::gathered_weights}};

std::vector<Column> columns_of(const std::vector<StageMemory>& memory) {
  std::vector<Column> used;
  for (const Column& column : columns)
    if (std::any_of(memory.begin(), memory.end(), [&](const auto& m) { return m.use.parts[column.part] > 0; }))
      used.push_back(column);
  return used;
}

std::string verdict_text(const Plan& plan, const Prediction& prediction) {
  const Verdict& verdict = prediction.verdict;
  return fmt::format(
      "  Pipeline rank {} is fullest and needs {} of {} ({}), the largest of what `slipway memory` knows, {};\n  "
      "cautiously, up to {}: {}.\n",
      verdict.fullest, readable_bytes(verdict.bytes), readable_bytes(verdict.usable), readable_share(verdict.share()),
      way_text(plan.scenario, verdict.way), readable_share(plan.scenario.trainer.cautious_share),
      verdict.fits_cautious ? "fits" : "does not fit");
}

}  // namespace

std::string memory_text(const std::vector<StageMemory>& memory, const std::vector<StageNeed>& needs,
                        double usable_share) {
  const std::vector<Column> more = columns_of(memory);
  std::vector<std::string> heading{"pipeline rank", "peak", "weights", "gradients", "optimizer", "activations"};
  for (const Column& column : more) heading.emplace_back(column.name);
  if (!needs.empty()) heading.emplace_back("needs");
  heading.insert(heading.end(), {"of a GPU's", "fits", "peaks in"});
  std::vector<std::vector<std::string>> rows{heading};
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const StageMemory& m = memory[stage];
    double activations = m.use.activations_peak;
    for (const Column& column : more) activations -= m.use.parts[column.part];
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("{} (rank {})", stage, m.rank), readable_bytes(m.use.peak),
           readable_bytes(m.use.fixed.weights),        readable_bytes(m.use.fixed.gradients),
           readable_bytes(m.use.fixed.optimizer),      readable_bytes(activations)};
    for (const Column& column : more) row.push_back(readable_bytes(m.use.parts[column.part]));
    if (!needs.empty()) row.push_back(readable_bytes(needs[stage].bytes));
    const bool fits = needs.empty() ? m.fits() : needs[stage].bytes <= usable_share * m.capacity;
    row.insert(row.end(), {readable_bytes(m.capacity) + m.on, fits ? "yes" : "no", m.use.peak_task});
  }
  return aligned_table(rows, "  ");
}

std::string report_text(const Plan& plan, const Prediction& prediction) {
  const StepMetrics& step = prediction.step;
  std::string text = headline(plan) + "\n\n";
  text += aligned_table({{"step time", "MFU", "tokens/s", "fits"},
                         {readable_seconds(step.step_time_s), step.mfu > 0 ? readable_share(step.mfu) : "-",
                          readable_count(prediction.tokens_per_s), prediction.fits() ? "yes" : "no"}},
                        "  ") +
          "\n";
  if (prediction.training) text += training_text(plan.scenario, *prediction.training);
  text += basis_text(prediction.basis) + shares_text(step) + "\n" + filling_text(plan);
  if (prediction.stragglers) text += straggler_text(*prediction.stragglers);
  text +=
      fmt::format("Memory, the fullest rank of each pipeline rank (fits: {}):\n", prediction.fits() ? "yes" : "no") +
      memory_text(prediction.memory, prediction.needs, plan.scenario.trainer.usable_share) + "\n" +
      verdict_text(plan, prediction) + closed_form_text(plan, prediction.memory[0]) + "\n";
  const bool window = plan.graph.window > 1;
  const std::string unit = window ? "window" : "step";
  text += fmt::format("One {}{} alone takes {}. {}{}{} a {}, {} simulated in {}.\n\n", unit,
                      window ? " of " + counted(plan.graph.window, "step") : "", readable_seconds(step.makespan_s),
                      folding_text(plan), repeating_text(plan, prediction), tasks_text(plan, prediction), unit,
                      counted(prediction.steps, unit.c_str()), readable_seconds(prediction.simulate_wall_s));
  return text;
}

namespace {

MemoryInput closed_form_input(const Plan& plan) {
  const Layout& layout = plan.graph.step.layout;
  MemoryInput input = memory_input(plan.graph.step.model, plan.graph.shape());
  input.pipeline = layout.pipeline;
  input.data = layout.data;
  input.chunks = layout.chunks;
  input.micro_batches = micro_batches_of(plan);
  input.zero = layout.zero;
  input.gradient_dtype = plan.graph.step.gradient_dtype;
  input.recompute = plan.graph.step.recompute;
  double layers = 0;  // on the first pipeline rank, without embedding and head
  for (std::size_t stage = 0; stage < plan.graph.stages.size(); stage += static_cast<std::size_t>(layout.pipeline)) {
    layers += plan.graph.stages[stage].last - plan.graph.stages[stage].first;
  }
  input.layers_on_first_stage = layers - 1 - (layout.pipeline == 1 ? 1 : 0);
  return input;
}

}  // namespace

std::string closed_form_text(const Plan& plan, const StageMemory& first) {
  const std::string& schedule = plan.scenario.step.schedule;
  if (plan.scenario.step.actions) return "";  // has an order of its own
  if (schedule != "1f1b" && schedule != "interleaved-1f1b") return "";
  MemoryTerms terms;
  try {
    terms = closed_form_memory(closed_form_input(plan));
  } catch (const std::invalid_argument&) {
    return "";  // another model family, without a formula
  }
  const auto row = [](const char* name, double formula, double timeline) {
    return std::vector<std::string>{name, readable_bytes(formula), readable_bytes(timeline)};
  };
  const RankMemory& use = first.use;
  const double sharded = use.parts[MemoryPart::gradient_buckets] + use.parts[MemoryPart::gathered_weights];
  const double both = terms.layer_activations + terms.head_and_loss;
  std::vector<std::vector<std::string>> rows{
      {"term", "closed form", "timeline"},
      row("weights", terms.weights, use.fixed.weights),
      row("gradients", terms.gradients, use.fixed.gradients),
      row("optimizer", terms.optimizer, use.fixed.optimizer),
      row("activations of layers, head, loss", both, use.activations_peak - sharded),
      {"activations of the embedding input", readable_bytes(terms.embedding_input), "-"}};
  if (sharded > 0) rows.push_back({"unreduced gradients, gathered weights", "-", readable_bytes(sharded)});
  return "\n  Pipeline rank 0 in closed form (Fujii et al. 2024) beside this timeline:\n" + aligned_table(rows, "  ");
}

}  // namespace slipway::scenarios
