// A step's seconds by parts that a person can act on: products, attention, messages of each axis, the host,
// recomputation, the update, the bubble.
//
//   a GPU's time   mean over ranks, of the timeline:   tasks by what their operators take │ idle by what it waits for
//   the path       critical_path.h, term by term:      tasks, messages and launches of the step's longest chain
//
// Both sum to the step. The bubble exists on a GPU only: the path is never idle.
// Guarded by tests/schedules/breakdown_test.cpp.
#pragma once

#include "models/machine/priced_cluster.h"
#include "schedules/time/critical_path.h"
#include "schedules/time/durations.h"
#include "schedules/time/periodic.h"
#include "schedules/time/replay.h"
#include "schedules/time/work_price.h"

namespace slipway::schedules {

// Parts of the critical path of a step of `step_s` seconds (graph.window: of one step of the window). The rest that no
// term explains is that of slow GPUs.
TimeParts path_parts(const TaskGraph& graph, const PricedCluster& cluster, const std::vector<PathTerm>& terms,
                     double step_s);

// Parts of a step (graph.window: of one step of the window) on a mean rank of the timeline. `durations`: those of the
// timeline.
TimeParts rank_parts(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                     const Timeline& timeline, const PeriodicTimeline* periodic = nullptr);

}  // namespace slipway::schedules
