#include "scenarios/validate/pooled_rows.h"

#include <cmath>
#include <stdexcept>

#include "models/machine/trained_cluster.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/validate/graph_prices.h"
#include "schedules/time/metrics.h"

namespace slipway::scenarios {
namespace {

const TrainerFacts& facts_of(const PublishedRow& row) {
  const TrainerFacts* facts = built_in_trainer(row.trainer);
  if (facts == nullptr) throw std::invalid_argument("there is no trainer '" + row.trainer + "'");
  return *facts;
}

// What the table does not say of the step: the habits of its trainer.
Step step_by(const TrainerFacts& facts, Step step) {
  Layout& layout = step.layout;
  layout.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  layout.zero = layout.data > 1 ? layout.zero : 0;
  layout.context_exchange = facts.ring_attention ? ContextExchange::ring : ContextExchange::all_gather;
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

Scenario scenario_of_run(const PublishedRow& row) {
  if (!row.unpriceable.empty()) throw std::invalid_argument(row.unpriceable);
  if (row.fp8) throw std::invalid_argument("its products are in fp8");
  Scenario scenario;
  scenario.name = in_words(row);
  scenario.cluster.name = row.machine;
  scenario.cluster.groups = {nodes_of(row)};
  scenario.cluster.fabrics = default_fabrics(scenario.cluster.groups);
  for (Fabric& fabric : scenario.cluster.fabrics)
    if (fabric.scope == Fabric::Scope::cluster) fabric.gpus_per_port = row.gpus_per_port;
  scenario.step = step_by(facts_of(row), row.step);
  return scenario;
}

PricedRun::PricedRun(const PublishedRow& row)
    : row_{row.trainer, row.machine, row.step_s, 1}, scenario_(scenario_of_run(row)) {}

Cluster PricedRun::trained_by(const StepConstants& constants) const {
  return trained(scenario_.cluster, *built_in_trainer(row_.trainer), [&](const Machine&) { return constants; },
                 {scenario_.step.layout.chunks});
}

double PricedRun::replay(const StepConstants& constants) {
  Scenario scenario = scenario_;
  scenario.cluster = trained_by(constants);
  SimulatedStep step = replayed_step(scenario);
  const TaskGraph& graph = step.prepared.graph;
  const Timeline& timeline = step.simulation.timeline;
  terms_ = critical_path(graph, scenario.cluster, step.prepared.durations, timeline, periodic_of(step));
  works_ = {};
  works_.step = graph.step;
  works_.placement = graph.placement;
  works_.stages = graph.stages;
  works_.works = graph.works;
  works_.communicators = graph.communicators;
  works_.stage_operators = graph.stage_operators;
  return step_time_of(graph, timeline, periodic_of(step));
}

double PricedRun::sum(const StepConstants& constants) const {
  const std::vector<double> each = term_seconds(works_, trained_by(constants), terms_);
  double seconds = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) seconds += terms_[i].count * each[i];
  return seconds;
}

double PricedRun::seconds(const StepConstants& constants, std::vector<double>* slopes) const {
  const double here = sum(constants);
  if (slopes == nullptr) return here;
  constexpr double little = 1e-3;  // of the logarithm
  slopes->clear();
  for (const StepConstant& constant : step_constants()) {
    StepConstants moved = constants;
    moved.*constant.value *= std::exp(little);
    slopes->push_back(std::log(sum(moved) / here) / little);
  }
  return here;
}

}  // namespace slipway::scenarios
