#include "scenarios/predict/degradation_report.h"

#include <fmt/format.h>

#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"
#include "schedules/time/metrics.h"
#include "schedules/time/replay.h"

namespace slipway::scenarios {
namespace {

// Compute time of every rank in the measured step; 0 for ranks without tasks.
std::vector<double> compute_per_rank(const TaskGraph& graph, const Timeline& timeline) {
  const std::size_t step = measured_step(timeline);
  std::vector<double> busy(rank_count(graph.step.layout), 0);
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.tasks[id].communicator != none) continue;
    const std::size_t instance = step * graph.tasks.size() + id;
    busy[graph.tasks[id].rank] += timeline.end[instance] - timeline.start[instance];
  }
  return busy;
}

Description<StageWaiting> waiting_keys() {
  return Description<StageWaiting>()
      .only_column("pipeline rank", [](const StageWaiting& stage) { return std::to_string(stage.stage); })
      .only_column("computes", [](const StageWaiting& stage) { return readable_seconds(stage.compute_s); })
      .key("waiting_s", "s", "list, one per pipeline rank: step_time_s without its compute, mean over members",
           &StageWaiting::waits_s)
      .column("waits", readable_seconds)
      .key("healthy_waiting_s", "s", "the same without slow GPUs and ports", &StageWaiting::healthy_waits_s)
      .column("when healthy", readable_seconds)
      .only_column("slowest GPU", [](const StageWaiting& stage) {
        return stage.slowdown > 1 ? fmt::format("{:.3g} x, rank {}", stage.slowdown, stage.slowest_rank) : "-";
      });
}

}  // namespace

DegradationCost degradation_cost(const PreparedStep& prepared, double step_s, const Timeline& timeline,
                                 const Timeline& healthy) {
  const Cluster& cluster = prepared.scenario.cluster;
  DegradationCost cost;
  cost.step_s = step_s;
  cost.healthy_step_s = step_time_of(prepared.graph, healthy);
  cost.slow_ports = slow_port_count(cluster, rank_count(prepared.scenario.step.layout));
  const std::vector<double> busy = compute_per_rank(prepared.graph, timeline);
  const std::vector<double> healthy_busy = compute_per_rank(prepared.graph, healthy);
  cost.stages.resize(prepared.scenario.step.layout.pipeline);
  for (std::size_t p = 0; p < cost.stages.size(); ++p) cost.stages[p].stage = static_cast<int>(p);
  std::vector<int> members(cost.stages.size(), 0);
  for (int rank = 0; rank < rank_count(prepared.scenario.step.layout); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto p = static_cast<std::size_t>(coordinates_of(prepared.scenario.step.layout, rank).pipeline);
    StageWaiting& stage = cost.stages[p];
    const double slowdown = slowdown_of(cluster, rank);
    cost.slow_gpus += slowdown > 1.001 ? 1 : 0;
    if (slowdown > stage.slowdown) stage.slowdown = slowdown, stage.slowest_rank = rank;
    if (busy[at] == 0) continue;
    ++members[p];
    stage.compute_s += busy[at];
    stage.waits_s += cost.step_s - busy[at];
    stage.healthy_waits_s += cost.healthy_step_s - healthy_busy[at];
  }
  for (std::size_t p = 0; p < members.size(); ++p) {
    StageWaiting& stage = cost.stages[p];
    const double share = members[p] > 0 ? 1.0 / members[p] : 0;
    stage.compute_s *= share, stage.waits_s *= share, stage.healthy_waits_s *= share;
  }
  return cost;
}

const Description<DegradationCost>& degradation_cost_keys() {
  static const Description<DegradationCost> description =
      Description<DegradationCost>()
          .key("degradation_s", "s",
               "part of step_time_s that slow GPUs and ports cost; this and the next three are present with "
               "cluster.stragglers or cluster.slow_links, without schedule.fill",
               &DegradationCost::lost_s)
          .key("healthy_step_time_s", "s", "a step without them, the ranks in the same order",
               &DegradationCost::healthy_step_s)
          .lists(&DegradationCost::stages, waiting_keys());
  return description;
}

std::string degradation_text(const DegradationCost& cost) {
  return fmt::format("Degradation ({}, {}) costs {} a step, {} of it: {} instead of {}. Waiting times (means):\n{}\n",
                     counted(cost.slow_gpus, "slow GPU"), counted(cost.slow_ports, "slow port"),
                     readable_seconds(cost.lost_s()), readable_share(cost.lost_s() / cost.step_s),
                     readable_seconds(cost.step_s), readable_seconds(cost.healthy_step_s),
                     aligned_table(waiting_keys().table(cost.stages), "  "));
}

}  // namespace slipway::scenarios
