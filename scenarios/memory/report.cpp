#include "scenarios/memory/report.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/memory/terms.h"

namespace slipway {

bool MemoryReport::is_safe() const {
  return std::all_of(stages.begin(), stages.end(), [](const StageReport& s) { return s.is_safe(); });
}

MemoryReport memory_report(const Plan& plan, const Timeline& timeline, const SteadyState* steady) {
  MemoryReport report;
  std::vector<MemoryParts> formula;
  try {
    formula = formula_memory(plan.scenario);
  } catch (const std::invalid_argument& reason) {
    report.no_formula = reason.what();
  }
  const std::vector<StageTerms> counted = counted_memory(plan.scenario);
  const std::vector<StageMemory> memory = stage_memory(plan, timeline, steady);
  const std::vector<StageNeed> needs = stage_needs(plan.scenario, on_timeline(memory));
  for (std::size_t stage = 0; stage < memory.size(); ++stage) {
    const StageMemory& fullest = memory[stage];
    StageReport& row = report.stages.emplace_back();
    row.rank = fullest.rank;
    row.capacity = fullest.capacity;
    row.on = fullest.on;
    if (!formula.empty()) row.formula = formula[stage];
    row.timeline = fullest.use.parts;
    row.estimate = estimated(counted[stage], plan.scenario.trainer);
    row.estimate[MemoryPart::kept_for_fillers] = row.timeline[MemoryPart::kept_for_fillers];
    row.peak_task = fullest.use.peak_task;
    row.needs = needs[stage].bytes;
    row.fits = row.needs <= plan.scenario.trainer.usable_share * row.capacity;
    row.fits_cautious = row.needs <= plan.scenario.trainer.cautious_share * row.capacity;
  }
  report.verdict = verdict_of(plan.scenario, needs);
  report.step_time_s = plan.shortened ? replayed_step_s(plan.scenario)
                                      : step_time_of(plan.graph, replay(plan.graph, plan.durations, 3));
  return report;
}

}  // namespace slipway
