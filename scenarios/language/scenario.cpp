#include "scenarios/language/scenario.h"

#include <algorithm>

#include "scenarios/language/load_constants.h"

namespace slipway::scenarios {

std::string describe(const std::vector<ScenarioError>& errors) {
  std::string out;
  for (const ScenarioError& error : errors) {
    out += error.file;
    if (error.line > 0) out += ":" + std::to_string(error.line);
    if (!error.key.empty()) out += ": " + error.key;
    out += ": " + error.message + "; " + error.remedy + "\n";
  }
  return out;
}

void derive_step(Scenario& scenario) {
  Step& step = scenario.step;
  const TrainerFacts& trainer = scenario.trainer;
  step.worker_norms = scenario.growth.given && scenario.growth.rule == BatchRule::norm_test;
  const bool has_habits = is_priced_by_trainer(scenario.cluster);  // else those of `slipway execute`
  step.blocking_transfers = has_habits && trainer.blocking_transfers;
  step.overlap_grad_reduce = !has_habits || trainer.overlaps_reduction;
  step.overlap_param_gather = !has_habits || trainer.overlaps_gather;
  step.narrow_habits.one_copy = std::ranges::all_of(scenario.cluster.groups, [](const NodeGroup& group) {
    return multiplies_in_any_order(group.machine.generation);
  });
  step.narrow_habits.casts_each_pass = has_habits && !trainer.caches_narrow_weights;
}

ContextExchange usual_exchange(const Scenario& scenario) {
  const bool goes_around = is_priced_by_trainer(scenario.cluster) && scenario.trainer.ring_attention &&
                           !writes_scores(scenario.step.kernels);
  return goes_around ? ContextExchange::ring : ContextExchange::all_gather;
}

SplitKind usual_split(const Scenario& scenario) {
  const bool balances = is_priced_by_trainer(scenario.cluster) && scenario.trainer.balances_layers;
  return balances ? SplitKind::balanced : SplitKind::even;
}

Dtype reduced_in(const Scenario& scenario, Dtype kept) {
  const Dtype dtype = scenario.step.dtype;
  if (dtype == Dtype::float64) return dtype;
  const ReductionDtype by =
      is_priced_by_trainer(scenario.cluster) ? scenario.trainer.reduces_in : ReductionDtype::float32;
  return by == ReductionDtype::run ? kept : by == ReductionDtype::training ? dtype : Dtype::float32;
}

Dtype usual_gradient_dtype(const Scenario& scenario) {
  const double kept_bytes = scenario.memory.facts.gradient_bytes;
  const bool is_narrow = kept_bytes > 0 && kept_bytes <= bytes_of(scenario.step.dtype);
  return reduced_in(scenario, is_narrow ? scenario.step.dtype : Dtype::float32);
}

const PooledConstants& constants_of(const Scenario& scenario) {
  return scenario.constants ? *scenario.constants : built_in_constants();
}

StepConstants constants_on(const Scenario& scenario, const Machine& machine) {
  if (scenario.step_constants) return scenario.step_constants(machine);
  return constants_of(constants_of(scenario), scenario.trainer.name, machine.name);
}

PricedCluster priced_cluster(const Scenario& scenario) {
  return priced(scenario.cluster, scenario.trainer,
                [&](const Machine& machine) { return constants_on(scenario, machine); });
}

}  // namespace slipway::scenarios
