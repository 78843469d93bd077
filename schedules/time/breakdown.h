// What a step's seconds are spent on, by kinds that a person can act on: products, attention, messages of each axis, the
// host, recomputation, the update, the bubble.
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

// Of the critical path of a step of `step_s` (graph.window: of one of the window's). What the terms do not have is that of slow GPUs.
TimeParts path_parts(const TaskGraph& graph, const PricedCluster& cluster, const std::vector<PathTerm>& terms,
                     double step_s);

// Of a step (graph.window: of one of the window's) on a mean rank of the timeline. `durations`: those of the timeline.
TimeParts rank_parts(const TaskGraph& graph, const PricedCluster& cluster, const Durations& durations,
                     const Timeline& timeline, const PeriodicTimeline* periodic = nullptr);

}  // namespace slipway::schedules
