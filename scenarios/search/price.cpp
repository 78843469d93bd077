// One layout, judged and simulated.
#include <limits>

#include "scenarios/memory/verdict.h"
#include "scenarios/search/search.h"
#include "scenarios/validation/prediction.h"
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

void note_verdict(const Scenario& one, PricedLayout& row) {
  const Verdict verdict = verdict_of(one);
  row.judged = true;
  row.memory_bytes = verdict.bytes;
  row.memory_share = verdict.share() * one.trainer.usable_share;  // of the GPU
}

void note_timeline(const SimulatedStep& step, const Scenario& scenario, PricedLayout& row) {
  const std::vector<RankMemory> ranks = memory_timeline(step.plan.graph, step.simulation.timeline, steady_of(step));
  const std::vector<double> capacities = memory_capacities(scenario);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].peak <= row.timeline_share * capacities[rank]) continue;
    row.timeline_bytes = ranks[rank].peak;
    row.timeline_share = ranks[rank].peak / capacities[rank];
  }
  if (row.timeline_share <= row.memory_share) return;
  row.memory_bytes = row.timeline_bytes;
  row.memory_share = row.timeline_share;
}

void note_simulation(const Scenario& one, PricedLayout& row) {
  StepOptions options;
  options.makespan = false;
  const SimulatedStep step = simulated_step(
      one, options,
      {[](const Scenario& scenario, const PlanOptions& how) { return ordered_plan(scenario, how); },
       [](const Plan& plan, const SimulationOptions& how, const std::vector<int>& steps) {
         return simulate_each(plan.graph, plan.scenario.cluster, plan.durations, how, steps);
       }});
  row.simulated = true;
  note(metrics_of(step.plan.graph, step.simulation.timeline, peak_flops(one), steady_of(step)), row);
  note_timeline(step, one, row);
}

}  // namespace

PricedLayout price_layout(const Scenario& scenario, const LayoutChoice& choice) {
  return price_if_it_fits(scenario, choice, std::numeric_limits<double>::infinity());
}

PricedLayout price_if_it_fits(const Scenario& scenario, const LayoutChoice& choice, double memory_share) {
  const Scenario one = with_layout(scenario, choice);
  PricedLayout row;
  row.choice = choice;
  row.choice.layout = one.layout;  // as it is balanced
  note_verdict(one, row);
  if (row.memory_share <= memory_share) note_simulation(one, row);
  return row;
}

bool fits(const PricedLayout& row, double memory_share) {
  return row.judged && row.memory_share <= memory_share;
}

}  // namespace slipway
