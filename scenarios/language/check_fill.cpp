// What K-FAC, filled bubbles and block tables cannot be combined with.
#include <utility>

#include "scenarios/language/check_scenario.h"

namespace slipway {
namespace {

void check_kfac(Settings& settings, const Scenario& scenario) {
  if (scenario.run.optimizer.name != "kfac") return;
  const Layout& layout = scenario.layout;
  if (has_experts(scenario.model))
    settings.refuse("run.optimizer",
                    "K-FAC of experts is not modelled: each has few tokens for factors of its own; allowed with model.experts: "
                    "adamw",
                    "choose adamw, or a model without experts");
  if (settings.good({"layout.tensor"}) && layout.tensor > 1)
    settings.refuse("layout.tensor",
                    "K-FAC's factors belong to whole layers, which tensor parallelism splits; allowed with "
                    "run.optimizer kfac: 1",
                    "set layout.tensor to 1, or choose another optimizer");
  if (settings.good({"layout.zero"}) && layout.zero > 0)
    settings.refuse("layout.zero",
                    "K-FAC preconditions the gradient of a whole layer, which ZeRO shards; allowed with "
                    "run.optimizer kfac: 0",
                    "set layout.zero to 0, or choose another optimizer");
}

void check_evaluation(Settings& settings, const Layout& layout) {
  for (const auto& [key, degree] : {std::pair{"layout.tensor", layout.tensor}, std::pair{"layout.context", layout.context}})
    if (settings.good({key}) && degree > 1)
      settings.refuse(key,
                      "evaluation in the bubbles passes whole layers on a rank, because sharded ones communicate; allowed with "
                      "schedule.fill evaluation: 1",
                      std::string("set ") + key + " to 1, or leave schedule.fill out");
}

}  // namespace

void derive_fill(Settings& settings, Scenario& scenario) {
  check_kfac(settings, scenario);
  if (!settings.good({"schedule.fill", "run.optimizer.name"})) return;
  const bool kfac = scenario.run.optimizer.name == "kfac";
  FillChoice& fill = scenario.schedule.fill;
  fill = settings.given("schedule.fill") ? static_cast<FillChoice>(settings.choice("schedule.fill"))
         : kfac                          ? FillChoice::kfac
                                         : FillChoice::none;
  if (fill == FillChoice::kfac && !kfac)
    settings.refuse("schedule.fill",
                    "there is no K-FAC work: run.optimizer is " + scenario.run.optimizer.name +
                        "; allowed with it: none, evaluation",
                    "set run.optimizer to kfac");
  if (fill == FillChoice::evaluation) check_evaluation(settings, scenario.layout);
  if (fill == FillChoice::evaluation && kfac)
    settings.refuse(
        "schedule.fill",
        "the bubbles take one kind of work, and run.optimizer kfac brings its own; allowed with it: "
        "none, kfac",
        "leave schedule.fill out, or choose another optimizer");
  if (fill == FillChoice::kfac && settings.given("run.optimizer.refresh_steps"))
    settings.refuse(
        "run.optimizer.refresh_steps",
        "in filled bubbles the refresh interval follows from what fits; allowed: with schedule.fill none",
        "remove it, or set schedule.fill to none");
}

void check_block_times(Settings& settings, const Scenario& scenario) {
  if (!settings.given("cluster.block_times") ||
      !settings.good({"model", "schedule.name", "schedule.slices", "schedule.micro_batch", "layout.tensor",
                      "layout.context", "run.dtype"}))
    return;
  const BlockTable& table = scenario.cluster.groups.front().machine.blocks;
  WorkShape shape;
  shape.micro_batch = scenario.schedule.micro_batch;
  shape.sequence = scenario.model.sequence / scenario.schedule.slices;
  shape.sharding = sharding_of(scenario.layout);
  shape.dtype = scenario.dtype;
  for (const BlockRun& run : scenario.model.runs) {
    if (run.block.kind != BlockKind::transformer) continue;
    const std::string reason = mismatch(table, run.block, shape);
    if (reason.empty()) continue;
    settings.refuse("cluster.block_times", reason + "; allowed: what was measured",
                    "change the scenario, or leave cluster.block_times out to price from the machine");
    return;
  }
}

}  // namespace slipway
