// One layout, simulated.
#include "scenarios/prediction.h"
#include "scenarios/search.h"
#include "schedules/graph/durations.h"
#include "schedules/graph/folding.h"
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

PricedLayout price_layout(const Scenario& scenario, const LayoutChoice& choice) {
  const Scenario one = with_layout(scenario, choice);
  LoweringInput input = lowering_input(one);
  input.folding = folding_of(one.cluster, one.layout, input.clip_norm);
  TaskGraph graph = lower(input);
  const Durations durations = durations_of(graph, one.cluster);
  set_global_order(graph, durations);
  const Simulation simulation = simulate(graph, one.cluster, durations, {});
  PricedLayout row;
  row.choice = choice;
  row.simulated = true;
  note(metrics_of(graph, simulation.timeline, peak_flops(one)), row);
  note_memory(graph, simulation.timeline, one, row);
  return row;
}

}  // namespace slipway
