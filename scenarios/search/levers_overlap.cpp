// Levers of messages and launches: what runs at the same time, and what the host launches.
#include <algorithm>

#include "scenarios/search/levers.h"

namespace slipway::scenarios {
namespace {

std::string overlap_tensor(Scenario& scenario) {
  if (scenario.step.overlap_tensor) return "it is the scenario's own";
  if (scenario.step.layout.tensor == 1) return "one tensor rank sends nothing";
  scenario.step.overlap_tensor = true;
  return "";
}

// Habits of a trainer (models/machine/trainer_facts.h). On machines without measured kernels, `slipway execute` has them.
Lever habit(const char* name, bool TrainerFacts::*fact, bool wanted, int Layout::*degree) {
  return {name, [=](Scenario& scenario) -> std::string {
            if (!is_priced_by_trainer(scenario.cluster)) return "`slipway execute` does so";
            if (scenario.trainer.*fact == wanted) return "the trainer does so";
            if (scenario.step.layout.*degree == 1) return "one rank of that axis sends nothing";
            scenario.trainer.*fact = wanted;
            return "";
          }};
}

std::string ring_of_keys_and_values(Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  if (layout.context == 1) return "one context rank sends nothing";
  layout.context_exchange =
      layout.context_exchange == ContextExchange::ring ? ContextExchange::all_gather : ContextExchange::ring;
  return "";
}

std::string sequence_parallel(Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  if (layout.tensor == 1) return "one tensor rank: there is nothing to divide";
  layout.sequence_parallel = !layout.sequence_parallel;
  return "";
}

std::string graphs(Scenario& scenario) {
  if (!is_priced_by_trainer(scenario.cluster)) return "launches of this machine are part of its kernels' time";
  if (scenario.trainer.cuda_graphs) return "the trainer launches everything by graphs";
  SetOf<GraphScope>& set = scenario.step.levers.graphs;
  if (!set.empty()) return "it is the scenario's own";
  const bool experts = has_experts(scenario.step.model);
  set = experts ? set_of(GraphScope::attn, GraphScope::moe_router) : set_of(GraphScope::attn, GraphScope::mlp);
  return "";
}

std::string full_graphs(Scenario& scenario) {
  if (!is_priced_by_trainer(scenario.cluster)) return "launches of this machine are part of its kernels' time";
  if (scenario.trainer.cuda_graphs) return "the trainer launches everything by graphs";
  if (scenario.step.levers.graphs == set_of(GraphScope::full)) return "it is the scenario's own";
  scenario.step.levers.graphs = set_of(GraphScope::full);
  scenario.trainer.cuda_graphs = true;  // as the loader has it
  return "";
}

Lever kernels_lever(Kernels kernels) {
  return {std::string("kernels ") + name_of(kernels), [kernels](Scenario& scenario) -> std::string {
            if (scenario.step.kernels == kernels) return "it is the scenario's own";
            scenario.step.kernels = kernels;
            return "";
          }};
}

}  // namespace

std::vector<Lever> overlap_levers() {
  return {{"overlap tensor messages", overlap_tensor},
          habit("overlap gradient reductions", &TrainerFacts::overlaps_reduction, true, &Layout::data),
          habit("overlap weight gathers", &TrainerFacts::overlaps_gather, true, &Layout::data),
          habit("sends without waiting", &TrainerFacts::blocking_transfers, false, &Layout::pipeline),
          {"other exchange of keys, values", ring_of_keys_and_values},
          {"sequence parallel on or off", sequence_parallel},
          {"CUDA graphs of modules", graphs},
          {"CUDA graphs of layers", full_graphs},
          kernels_lever(Kernels::flash2_rmsnorm)};
}

}  // namespace slipway::scenarios
