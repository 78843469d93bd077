#include "scenarios/language/rungs.h"

#include <algorithm>

#include "schedules/graph/lowering.h"

namespace slipway {

StepCut step_cut(const Scenario& scenario) {
  return {schedule_named(scenario.schedule.name), scenario.model, scenario.layout, scenario.schedule.micro_batch,
          scenario.schedule.slices};
}

namespace {

// Of the smallest step: a schedule does it or does not.
bool splits_backward(const StepCut& cut) {
  const Layout& layout = cut.layout;
  for (int count = 1; count <= 8 * layout.pipeline; ++count) {
    const ScheduleShape shape{layout.pipeline, layout.chunks, count, cut.slices, cut.schedule->copies};
    if (cut.schedule->refuse == nullptr || cut.schedule->refuse(shape).empty())
      return splits_backward(cut.schedule->actions(shape));
  }
  return false;  // it runs no step
}

}  // namespace

std::string why_no_norm_test(const StepCut& cut) {
  return why_no_worker_norms(cut.model, cut.layout, cut.schedule->copies, cut.slices, splits_backward(cut));
}

bool is_rung(const StepCut& cut, std::int64_t batch) {
  const std::int64_t count = batch / cut.unit();
  if (count < 1 || batch % cut.unit() != 0 || count > most_micro_batches) return false;
  const ScheduleShape shape{cut.layout.pipeline, cut.layout.chunks, static_cast<int>(count), cut.slices,
                            cut.schedule->copies};
  return cut.schedule->refuse == nullptr || cut.schedule->refuse(shape).empty();
}

std::vector<std::int64_t> rungs_between(const StepCut& cut, std::int64_t first, std::int64_t largest) {
  std::vector<std::int64_t> rungs;
  const std::int64_t last = std::min(largest / cut.unit(), most_micro_batches) * cut.unit();
  for (std::int64_t batch = (first + cut.unit() - 1) / cut.unit() * cut.unit(); batch <= last;
       batch += cut.unit())
    if (is_rung(cut, batch)) rungs.push_back(batch);
  return rungs;
}

bool runs_every_batch(const GrowthChoice& growth, const StepCut& cut) {
  if (!growth.given) return true;
  if (growth.rule == BatchRule::norm_test && !why_no_norm_test(cut).empty()) return false;
  if (growth.largest > 0 && !is_rung(cut, growth.largest)) return false;
  return std::all_of(growth.stages.begin(), growth.stages.end(),
                     [&](const BatchStage& stage) { return is_rung(cut, stage.batch); });
}

}  // namespace slipway
