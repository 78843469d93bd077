// One layout by one engine.
#include "scenarios/prediction.h"
#include "scenarios/search.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/memory_timeline.h"
#include "schedules/graph/metrics.h"

namespace slipway {
namespace {

void note(const StepMetrics& step, PricedLayout& row) {
  row.step_time_s = step.step_time_s;
  row.mfu = step.mfu;
  row.compute_share = step.compute_share;
  row.bubble_share = step.bubble_share;
  row.exposed_comm_share = step.exposed_comm_share;
}

void note_memory(const TaskGraph& graph, const Timeline& timeline, const Scenario& scenario,
                 PricedLayout& row) {
  const std::vector<RankMemory> ranks = memory_timeline(graph, timeline);
  const std::vector<double> capacities = memory_capacities(scenario);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].peak <= row.memory_share * capacities[rank]) continue;
    row.memory_bytes = ranks[rank].peak;
    row.memory_share = ranks[rank].peak / capacities[rank];
  }
}

}  // namespace

PricedLayout price_layout(const Scenario& scenario, const LayoutChoice& choice, SearchEngine engine) {
  PricedLayout row;
  row.choice = choice;
  row.engine = engine;
  Scenario one = with_layout(scenario, choice);
  if (engine == SearchEngine::simulation) {
    const Plan plan = plan_of(std::move(one));
    const Simulation simulation = simulate(plan.graph, plan.scenario.cluster, plan.durations, {});
    note(metrics_of(plan.graph, simulation.timeline, peak_flops(plan.scenario)), row);
    note_memory(plan.graph, simulation.timeline, plan.scenario, row);
    return row;
  }
  LoweringInput input = lowering_input(one);
  input.one_member = true;
  TaskGraph graph = lower(input);
  const Durations durations = durations_of(graph, one.cluster);
  set_global_order(graph, durations);
  const Timeline timeline = replay(graph, durations, 3);
  note(metrics_of(graph, timeline, peak_flops(one)), row);
  note_memory(graph, timeline, one, row);
  return row;
}

double graph_tasks(const Scenario& scenario, const LayoutChoice& choice) {
  const Layout& l = choice.layout;
  const double micro_batches = static_cast<double>(scenario.schedule.global_batch) /
                               static_cast<double>(choice.micro_batch) / l.data;
  const double layers = static_cast<double>(layer_count(scenario.model)) / l.pipeline;
  // Per layer and pass: with tensor or context parallelism four or five segments, and as many collectives
  // shared by their group; per stage and pass a segment and a message; ZeRO 2 and 3 and recomputation by
  // layer.
  double per_layer = l.tensor > 1 ? 4.0 + 4.0 / l.tensor : 0;
  if (l.context > 1) per_layer += 1 + 1.0 / l.context;
  if (per_layer == 0 && (choice.recompute == Recompute::full || l.zero >= 2)) per_layer = 1;
  if (choice.recompute == Recompute::full) per_layer *= 1.5;
  if (l.zero >= 2) per_layer += 1.5 / l.data;
  return rank_count(l) * micro_batches * 2 * (layers * per_layer + 2.0 * l.chunks);
}

}  // namespace slipway
