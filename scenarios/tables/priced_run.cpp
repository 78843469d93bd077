#include "scenarios/tables/priced_run.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "scenarios/language/load_trainer.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/price_memory.h"

namespace slipway::scenarios {
namespace {

const TrainerFacts& facts_of(const PublishedRow& row) {
  const Trainer* trainer = built_in_trainer(row.trainer);
  if (trainer == nullptr) throw std::invalid_argument("there is no trainer '" + row.trainer + "'");
  return trainer->facts;
}

// The row says nothing of what its trainer does as a rule.
void take_habits(Scenario& scenario) {
  const Dtype kept = scenario.step.gradient_dtype;
  derive_step(scenario);
  scenario.step.gradient_dtype = reduced_in(scenario, kept);
  Layout& layout = scenario.step.layout;
  layout.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  layout.zero = layout.data > 1 ? layout.zero : 0;
  layout.context_exchange = usual_exchange(scenario);
  layout.split = usual_split(scenario);
  scenario.step.schedule = layout.chunks > 1 ? "interleaved-1f1b" : "1f1b";
}

}  // namespace

NodeGroup nodes_of(const PublishedRow& row) {
  const int per_node = std::min(row.gpus, row.gpus_per_node);
  if (row.gpus % per_node != 0)
    throw std::invalid_argument("its GPUs do not fill whole nodes of " + std::to_string(per_node));
  Machine machine = machine_of(row);
  if (node_share({machine, 1, row.gpus_per_node}, 2) == 1) machine.node_link.mesh = 0;  // also of a part of such a node
  return {machine, row.gpus / per_node, per_node};
}

Scenario scenario_of(const PublishedRow& row) {
  if (!row.unpriceable.empty()) throw std::invalid_argument(row.unpriceable);
  if (row.scenario) {
    Scenario scenario = *row.scenario;
    scenario.name = in_words(row);
    return scenario;
  }
  if (row.fp8) throw std::invalid_argument("some of its products are in fp8, and the table does not say which");
  if (row.shard_group > 0 && row.shard_group < row.step.layout.data)
    throw std::invalid_argument("its replicas share their shards in groups of " + std::to_string(row.shard_group) +
                                " GPUs");
  Scenario scenario;
  scenario.name = in_words(row);
  scenario.cluster.name = row.machine;
  scenario.cluster.groups = {nodes_of(row)};
  scenario.cluster.fabrics = default_fabrics(scenario.cluster.groups);
  for (Fabric& fabric : scenario.cluster.fabrics)
    if (fabric.scope == Fabric::Scope::cluster) fabric.gpus_per_port = row.gpus_per_port;
  scenario.trainer = facts_of(row);
  scenario.names_trainer = true;
  scenario.memory = memory_constants_of(row);
  scenario.step = row.step;
  take_habits(scenario);
  return scenario;
}

PricedRun::PricedRun(const PublishedRow& row)
    : PricedStep(scenario_of(row)), row_{row.trainer, row.machine, row.step_s, 1} {}

}  // namespace slipway::scenarios
