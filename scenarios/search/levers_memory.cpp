// Levers that trade memory for time: recomputation, offloading, shards of the optimizer.
#include <algorithm>

#include "scenarios/search/levers.h"

namespace slipway::scenarios {
namespace {

Lever recompute_lever(const char* name, Recompute kind) {
  return {name, [kind](Scenario& scenario) -> std::string {
            Step& step = scenario.step;
            if (step.recompute == kind && step.levers.recomputed.empty()) return "it is the scenario's own";
            if (kind == Recompute::selective && !writes_scores(step.kernels))
              return "fused attention kernels keep no scores";
            step.recompute = kind;
            step.levers.recomputed = {};
            if (kind != Recompute::full) step.levers.offloaded = {};
            return "";
          }};
}

std::string recompute_norms_and_activations(Scenario& scenario) {
  Step& step = scenario.step;
  if (step.recompute == Recompute::full) return "whole layers are recomputed already";
  const auto has = [&](RecomputedModule module) {
    return std::any_of(step.model->runs.begin(), step.model->runs.end(),
                       [&](const BlockRun& run) { return has_module(run.block, module); });
  };
  SetOf<RecomputedModule> set = step.levers.recomputed;
  for (const RecomputedModule module : {RecomputedModule::layernorm, RecomputedModule::moe_act})
    if (has(module)) set.add(module);
  if (set == step.levers.recomputed) return "the model has no further module that is cheap to recompute";
  step.levers.recomputed = set;
  return "";
}

std::string stop_offloading(Scenario& scenario) {
  Levers& levers = scenario.step.levers;
  if (!levers.offloads()) return "nothing is offloaded";
  levers.offloaded = {};
  levers.offloaded_layers = 0;
  return "";
}

Lever zero_lever(int zero) {
  return {"ZeRO " + std::to_string(zero), [zero](Scenario& scenario) -> std::string {
            Layout& layout = scenario.step.layout;
            if (layout.zero == zero) return "it is the scenario's own";
            if (layout.data * layout.context == 1) return "one replica: there is nothing to shard";
            layout.zero = zero;
            return "";
          }};
}

}  // namespace

std::vector<Lever> memory_levers() {
  return {recompute_lever("no recomputation", Recompute::none),
          recompute_lever("selective recomputation", Recompute::selective),
          recompute_lever("full recomputation", Recompute::full),
          {"recompute cheap modules", recompute_norms_and_activations},
          {"no offloading", stop_offloading},
          zero_lever(0),
          zero_lever(1),
          zero_lever(2),
          zero_lever(3)};
}

}  // namespace slipway::scenarios
