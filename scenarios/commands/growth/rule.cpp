#include "scenarios/commands/growth/rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/commands/growth/ladder.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/check_scenario.h"

namespace slipway::scenarios {

void refuse_missing(const Scenario& scenario, const std::string& keys, const std::string& remedy) {
  throw UsageError(scenario.path + ": " + keys + (keys.find(", ") == std::string::npos ? " is" : " are") +
                   " missing; " + remedy);
}

void check_rule_is_whole(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  if (!growth.rule)
    refuse_missing(scenario, "training.growth.rule", "growth needs one of constant, linear, stages, norm-test");
  if (growth.largest == 0)
    refuse_missing(scenario, "training.growth.largest",
                   "growth needs the largest batch, for example --set training.growth.largest=" +
                       std::to_string(4 * scenario.step.global_batch));
  if (growth.rule == BatchRule::linear && growth.warmup == 0)
    refuse_missing(scenario, "training.growth.warmup", "the linear rule needs the sequences until the largest batch");
  if (growth.rule == BatchRule::stages && growth.stages.empty())
    refuse_missing(scenario, "training.growth.stages",
                   "this rule needs them, for example [{from: 100000, batch: " +
                       std::to_string(2 * scenario.step.global_batch) + "}]");
  if (growth.rule == BatchRule::norm_test && growth.eta == 0)
    refuse_missing(scenario, "training.growth.eta",
                   "the norm test needs it, for example --set training.growth.eta=0.2");
}

std::vector<std::int64_t> rungs_of(const Scenario& scenario) {
  const GrowthChoice& growth = scenario.growth;
  const std::vector<std::int64_t> all = rungs_between(scenario.step, scenario.step.global_batch, growth.largest);
  return growth.sizes == 0 ? all : some_rungs(all, stage_batches(scenario), growth.sizes);
}

std::vector<std::int64_t> stage_batches(const Scenario& scenario) {
  std::vector<std::int64_t> batches;
  for (const BatchStage& stage : scenario.growth.stages) batches.push_back(stage.batch);
  return batches;
}

std::vector<std::int64_t> rungs_that_run(const Scenario& scenario) {
  if (scenario.growth.rule != BatchRule::constant && scenario.growth.rule != BatchRule::stages)
    return rungs_of(scenario);
  std::vector<std::int64_t> rungs;
  if (scenario.growth.rule == BatchRule::stages) rungs = stage_batches(scenario);
  rungs.push_back(scenario.step.global_batch);
  std::sort(rungs.begin(), rungs.end());
  rungs.erase(std::unique(rungs.begin(), rungs.end()), rungs.end());
  return rungs;
}

std::string rule_text(const BatchSchedule& batches) {
  switch (batches.rule) {
    case BatchRule::constant:
      return "constant";
    case BatchRule::linear:
      return "linear warm-up";
    case BatchRule::stages:
      return "stages";
    case BatchRule::norm_test:
      break;
  }
  return fmt::format("norm test, eta {:g}", batches.eta);
}

BatchSchedule batch_schedule(const Scenario& scenario, BatchRule rule, std::vector<std::int64_t> rungs) {
  const GrowthChoice& growth = scenario.growth;
  const int workers = scenario.step.layout.data * schedule_of(scenario.step).copies;
  return {rule, std::move(rungs), growth.warmup, growth.stages, growth.eta, growth.test_every, workers};
}

}  // namespace slipway::scenarios
