#include "scenarios/memory_report.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/memory_terms.h"

namespace slipway {

bool MemoryReport::is_safe() const {
  return std::all_of(stages.begin(), stages.end(), [](const StageReport& s) { return s.is_safe(); });
}

MemoryReport memory_report(const Plan& plan, const Timeline& timeline) {
  MemoryReport report;
  std::vector<MemoryParts> formula;
  try {
    formula = formula_memory(plan.scenario);
  } catch (const std::invalid_argument& reason) {
    report.no_formula = reason.what();
  }
  const std::vector<StageTerms> counted = counted_memory(plan.scenario);
  const std::vector<StageMemory> on_timeline = stage_memory(plan, timeline);
  std::vector<double> kept;  // only the timeline knows how long
  for (std::size_t stage = 0; stage < on_timeline.size(); ++stage) {
    const StageMemory& fullest = on_timeline[stage];
    StageReport& row = report.stages.emplace_back();
    row.rank = fullest.rank;
    row.capacity = fullest.capacity;
    row.on = fullest.on;
    if (!formula.empty()) row.formula = formula[stage];
    row.timeline = fullest.use.parts;
    row.estimate = estimated(counted[stage], plan.scenario.trainer);
    row.estimate[MemoryPart::kept_for_fillers] = row.timeline[MemoryPart::kept_for_fillers];
    kept.push_back(row.timeline[MemoryPart::kept_for_fillers]);
    row.peak_task = fullest.use.peak_task;
    row.fits = sum(row.estimate) <= plan.scenario.trainer.usable_share * row.capacity;
  }
  report.verdict = verdict_of(plan.scenario, kept);
  report.step_time_s = step_time_of(plan.graph, replay(plan.graph, plan.durations, 3));
  return report;
}

}  // namespace slipway
