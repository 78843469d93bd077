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

Step step_by(const TrainerFacts& facts, Step step) {
  Layout& layout = step.layout;
  layout.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  layout.zero = layout.data > 1 ? layout.zero : 0;
  const bool goes_around = layout.context > 1 && facts.ring_attention;
  layout.context_exchange = goes_around ? ContextExchange::ring : ContextExchange::all_gather;
  layout.split = facts.balances_layers ? SplitKind::balanced : SplitKind::even;
  step.schedule = layout.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  step.overlap_grad_reduce = facts.overlaps_reduction;
  step.overlap_param_gather = facts.overlaps_gather;
  step.blocking_transfers = facts.blocking_transfers;
  if (facts.fused_softmax && step.kernels == Kernels::torch) step.kernels = Kernels::fused_softmax;
  if (facts.reduces_in_float32) step.gradient_dtype = Dtype::float32;
  return step;
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
  scenario.step = step_by(scenario.trainer, row.step);
  return scenario;
}

PricedRun::PricedRun(const PublishedRow& row)
    : PricedStep(scenario_of(row)), row_{row.trainer, row.machine, row.step_s, 1} {}

}  // namespace slipway::scenarios
