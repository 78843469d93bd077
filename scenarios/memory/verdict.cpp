#include "scenarios/memory/verdict.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/memory/terms.h"
#include "scenarios/plan.h"

namespace slipway {
namespace {

bool has_constants(const Scenario& scenario) { return !scenario.trainer.machine.empty(); }

// Empty where there is none, or where a trainer's runs have said more than the book.
std::vector<MemoryParts> closed_form(const Scenario& scenario) {
  if (has_constants(scenario)) return {};
  try {
    return formula_memory(scenario);
  } catch (const std::invalid_argument&) {
    return {};  // another model family: the formula does not exist for it
  }
}

void raise(StageNeed& need, double bytes, MemoryWay way) {
  if (bytes <= need.bytes) return;
  need.bytes = bytes;
  need.way = way;
}

}  // namespace

std::vector<StageNeed> stage_needs(const Scenario& scenario, const std::vector<OnTimeline>& timeline) {
  const std::vector<StageTerms> terms = counted_memory(scenario);
  const std::vector<MemoryParts> formula = closed_form(scenario);
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
    need.bytes = peak_bytes(terms[stage], scenario.trainer) + seen.kept_for_fillers;
    if (!formula.empty()) raise(need, sum(formula[stage]), MemoryWay::closed_form);
    raise(need, seen.bytes, MemoryWay::timeline);
  }
  return needs;
}

Verdict verdict_of(const Scenario& scenario, const std::vector<StageNeed>& needs) {
  Verdict verdict;
  for (std::size_t stage = 0; stage < needs.size(); ++stage) {
    const StageNeed& need = needs[stage];
    const double usable = need.capacity * scenario.trainer.usable_share;
    verdict.fits &= need.bytes <= usable;
    verdict.fits_cautious &= need.bytes <= need.capacity * scenario.trainer.cautious_share;
    if (stage > 0 && need.bytes * verdict.usable <= verdict.bytes * usable) continue;
    verdict.fullest = static_cast<int>(stage);
    verdict.rank = need.rank;
    verdict.bytes = need.bytes;
    verdict.usable = usable;
    verdict.way = need.way;
  }
  return verdict;
}

Verdict verdict_of(const Scenario& scenario) { return verdict_of(scenario, stage_needs(scenario)); }

std::string way_text(const Scenario& scenario, MemoryWay way) {
  if (way == MemoryWay::timeline) return "on the simulated timeline";
  if (way == MemoryWay::closed_form) return "by the closed form of Fujii et al. 2024";
  const MemoryConstants& trainer = scenario.trainer;
  if (!has_constants(scenario)) return "counted tensor by tensor, without what a trainer takes besides (cluster.stack)";
  const std::string& machine = scenario.cluster.groups[0].machine.name;
  return "as " + trainer.name +
         (trainer.machine == machine ? "" : " on " + trainer.machine + " (nobody measured it on " + machine + ")") +
         " takes it";
}

}  // namespace slipway
