#include "schedules/time/metrics.h"

#include <algorithm>
#include <limits>

#include "schedules/time/accounting.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {
namespace {

double first_step_makespan(const TaskGraph& graph, const Timeline& timeline) {
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    first = std::min(first, timeline.start[i]);
    last = std::max(last, timeline.end[i]);
  }
  return last - first;
}

}  // namespace

std::size_t measured_step(const Timeline& timeline) {
  return timeline.steps >= 2 ? static_cast<std::size_t>(timeline.steps) - 2 : 0;
}

double step_time_of(const TaskGraph& graph, const Timeline& timeline, const PeriodicTimeline* periodic) {
  double slowest = 0;
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    if (graph.compute_order[rank].empty()) continue;
    const auto [begin, end] = measured_interval(graph, timeline, graph.compute_order[rank].front());
    slowest = std::max(slowest, end - begin + left_out_s(periodic));
  }
  return slowest / graph.window;
}

StepMetrics metrics_of(const TaskGraph& graph, const Timeline& timeline, double peak_flops,
                       const PeriodicTimeline* periodic) {
  StepMetrics metrics;
  if (graph.tasks.empty()) return metrics;
  metrics.step_time_s = step_time_of(graph, timeline, periodic);
  double ranks = 0;  // ranks that have work: all, except in a graph of one member of each pipeline rank
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank)
    ranks += graph.compute_order[rank].empty() ? 0 : 1;
  metrics.makespan_s = first_step_makespan(graph, timeline) + left_out_s(periodic);
  for (const RankShares& shares : shares_of_ranks(graph, timeline, periodic)) {
    if (shares.window <= 0) continue;
    metrics.exposed_comm_s += shares.exposed / graph.window / ranks;
    metrics.exposed_comm_share += shares.exposed / shares.window / ranks;
    metrics.compute_share += shares.compute / shares.window / ranks;
    metrics.bubble_share += shares.bubble() / shares.window / ranks;
  }
  const double tokens = static_cast<double>(graph.step.global_batch) * static_cast<double>(graph.step.model->sequence);
  if (metrics.step_time_s > 0 && peak_flops > 0) {
    metrics.mfu = tokens * mfu_flops_per_token(graph.step.model) / (peak_flops * metrics.step_time_s);
  }
  return metrics;
}

}  // namespace slipway::schedules
