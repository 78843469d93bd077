// The time of a step by use, for any timeline of the graph, replayed or simulated. Measured ranks have no such timeline
// (scenarios/predict/step_times.h).
//
// A window graph (schedules/lower/graph_builder.h) is several steps: step_time_s and exposed_comm_s are of one step,
// makespan_s of the whole window.
// Idle time of a compute lane is exposed communication while a communication task that its next task needs is running
// or queued. All other idle time is bubble. Shares are means over ranks.
#pragma once

#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

struct StepMetrics {
  double step_time_s = 0;     // period: start of the last step − start of the one before, slowest rank
  double makespan_s = 0;      // first start to last end of the first step (isolated when it is the only one)
  double mfu = 0;             // 0..1
  double bubble_share = 0;    // of the step's period
  double exposed_comm_s = 0;  // mean over ranks, of one step
  double exposed_comm_share = 0;
  double compute_share = 0;
};

// `timeline` has ≥ 1 steps. The period is taken from the last two when there are ≥ 2, else it is the makespan.
// `peak_flops`: dense FLOP/s in the model's dtype, summed over all GPUs. `periodic`: for periodic steps (periodic.h);
// the metrics are then those of the whole step, and graph.global_batch is the whole step's.
StepMetrics metrics_of(const TaskGraph& graph, const Timeline& timeline, double peak_flops,
                       const PeriodicTimeline* periodic = nullptr);
// step_time_s alone.
double step_time_of(const TaskGraph& graph, const Timeline& timeline, const PeriodicTimeline* periodic = nullptr);
// The step that the metrics describe: the last but one, up to the start of the last; or the only one.
std::size_t measured_step(const Timeline& timeline);

}  // namespace slipway::schedules
