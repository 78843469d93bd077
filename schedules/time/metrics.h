// Where the time of a step goes. Works on any timeline of the graph, replayed or
// simulated; what ranks measured has no such timeline (scenarios/answers/step_times.h).
//
// A window graph (window.h) is several steps: step_time_s and exposed_comm_s are of one of them, makespan_s of
// the whole window.
// Idle of a compute lane while a communication task that its next task needs is running or queued is
// exposed communication; every other idle is bubble. Shares are means over ranks.
#pragma once

#include "schedules/time/periodic.h"

namespace slipway::schedules {

struct StepMetrics {
  double step_time_s = 0;     // steady period: start of the last step − start of the one before, slowest rank
  double makespan_s = 0;      // first start to last end of the first step (isolated when it is the only one)
  double mfu = 0;             // 0..1
  double bubble_share = 0;    // of the step's period
  double exposed_comm_s = 0;  // mean over ranks, of one step
  double exposed_comm_share = 0;
  double compute_share = 0;
};

// `timeline` has ≥ 1 steps; the period is taken from the last two when there are ≥ 2, else makespan.
// `peak_flops` = sum over all GPUs of dense FLOP/s in the model's dtype. `steady`: of a shortened step (steady.h), for
// the figures of the whole one; graph.step.global_batch is that of the whole one then.
StepMetrics metrics_of(const TaskGraph& graph, const Timeline& timeline, double peak_flops,
                       const SteadyState* steady = nullptr);
// step_time_s alone.
double step_time_of(const TaskGraph& graph, const Timeline& timeline, const SteadyState* steady = nullptr);
// The step that the figures are of: the last but one, up to the start of the last; the only one where there is one.
std::size_t measured_step(const Timeline& timeline);

}  // namespace slipway::schedules
