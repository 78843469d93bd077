#include "scenarios/predict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "schedules/memory/counted_memory.h"

namespace slipway::scenarios {
namespace {

// A named trainer gathers keys and values again, Slipway's executor keeps them.
CountedAs counted_as(const Scenario& scenario) { return {.executor = !scenario.names_trainer, .layers = {}}; }

}  // namespace

std::vector<StageTerms> counted_memory(const Scenario& scenario) {
  std::vector<StageTerms> terms = schedules::counted_memory(scenario.step, counted_as(scenario));
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  const bool processors =
      std::all_of(groups.begin(), groups.end(), [](const NodeGroup& group) { return group.machine.cores > 0; });
  for (StageTerms& each : terms) each.has_libraries = !processors;
  return terms;
}

std::optional<MemoryTerms> closed_form_of(const Scenario& scenario, std::string* why) {
  const Step& step = scenario.step;
  const auto none = [&](const std::string& reason) -> std::optional<MemoryTerms> {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  if (step.actions || !schedule_of(step).has_memory_form)
    return none("the closed form of Fujii et al. 2024 is for " +
                schedules_with([](const Schedule& schedule) { return schedule.has_memory_form; }));
  if (step.recompute == Recompute::full)
    return none("the closed form of Fujii et al. 2024 has no term for full recomputation");
  if (!step.levers.recomputed.empty() || step.levers.offloads() || step.levers.lora.rank > 0 ||
      step.optimizer.moment_dtype != Dtype::float32 || step.optimizer.offload_fraction > 0)
    return none(
        "the closed form of Fujii et al. 2024 has no terms for recomputed modules, LoRA, moments of 2 bytes and states "
        "on hosts");
  if (step.layout.replicate > 1) return none("the closed form of Fujii et al. 2024 shards over all data ranks");
  try {
    MemoryInput input = memory_input(step.model, work_shape(step));
    input.pipeline = step.layout.pipeline;
    input.data = step.layout.data;
    input.chunks = step.layout.chunks;
    input.micro_batches = micro_batches_of(step);
    input.zero = step.layout.zero;
    input.gradient_dtype = step.gradient_dtype;
    return closed_form_memory(input);
  } catch (const std::invalid_argument& reason) {
    return none(reason.what());
  }
}

std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<OnTimeline>& timeline) {
  const std::vector<StageTerms> terms = counted_memory(scenario);
  const std::vector<double> capacities = memory_capacities(scenario);
  const std::size_t per_stage = capacities.size() / terms.size();
  std::vector<StageNeed> needs;
  for (std::size_t stage = 0; stage < terms.size(); ++stage) {
    const auto first = capacities.begin() + static_cast<std::ptrdiff_t>(stage * per_stage);
    const auto least = std::min_element(first, first + static_cast<std::ptrdiff_t>(per_stage));
    const OnTimeline seen = timeline.empty() ? OnTimeline{} : timeline[stage];
    StageNeed& need = needs.emplace_back();
    need.rank = static_cast<int>(least - capacities.begin());
    need.capacity = *least;
    need.odds = odds_of(terms[stage], scenario.memory);
    need.odds.bytes += seen.kept_for_bubble_work;
    const double there = seen.bytes - absent_bytes(terms[stage].optional, scenario.memory.facts);
    if (there > need.odds.bytes) need.way = MemoryWay::timeline;
    need.odds.bytes = std::max(need.odds.bytes, there);
    need.probability = need.odds.fits(need.capacity);
  }
  return needs;
}

Verdict verdict_of(const std::vector<StageNeed>& needs) {
  Verdict verdict;
  for (std::size_t stage = 0; stage < needs.size(); ++stage) {
    const StageNeed& need = needs[stage];
    verdict.fits &= need.fits();
    verdict.fits_cautious &= need.fits_cautious();
    const bool likelier = need.probability > verdict.probability ||
                          (need.probability == verdict.probability &&
                           need.odds.bytes * verdict.capacity <= verdict.odds.bytes * need.capacity);
    if (stage > 0 && likelier) continue;
    verdict.probability = need.probability;
    verdict.fullest = static_cast<int>(stage);
    verdict.rank = need.rank;
    verdict.odds = need.odds;
    verdict.capacity = need.capacity;
    verdict.way = need.way;
  }
  return verdict;
}

Verdict verdict_of(const Scenario& scenario) { return verdict_of(stage_needs(scenario)); }

std::string way_text(const Scenario& scenario, MemoryWay way) {
  if (way == MemoryWay::timeline) return "on the simulated timeline";
  if (!scenario.names_trainer) return "counted by operators, with what trainers usually take besides";
  const MemoryConstants& trainer = scenario.memory;
  const std::string& machine = scenario.cluster.groups[0].machine.name;
  return "as " + trainer.trainer + (trainer.machine.empty() ? " (no run of it known on " + machine + ")" : "") +
         " takes it";
}

std::string probability_text(double probability) {
  return probability > 0.999   ? "> 99.9 %"
         : probability < 0.001 ? "< 0.1 %"
                               : fmt::format("{:.1f} %", 100 * probability);
}

std::string odds_text(const Verdict& verdict, const std::string& machine) {
  return fmt::format("{} (90 %: {} to {}) of {}{}; it fits with a probability of {}",
                     readable_bytes(verdict.odds.bytes), readable_bytes(verdict.odds.least()),
                     readable_bytes(verdict.odds.most()), readable_bytes(verdict.capacity), machine,
                     probability_text(verdict.probability));
}

}  // namespace slipway::scenarios
