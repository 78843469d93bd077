// A measured trace as observations for the fit. A record's label is a task's, so the graph knows its operators.
//
//   record "1B0" of rank 1, 0.081 s ──► task 1B0 ──► its segment's operators ──► Observation
//
// Equal work counts once, with the mean over its instances (steps, micro-batches, replicas), but for the tenth at either
// end: a step is a sum of tasks. The first step warms caches up and is left out where there are others. The work time of a
// message is its slowest member's. On processors a task takes from when it could have begun: a thread that sleeps is woken.
// The weight of an observation is its seconds in the run. A compute task has the share of its time in which its
// rank also communicated.
// Guarded by tests/scenarios/trace_observations_test.cpp: the fit to the trace of a made-up machine finds that machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/fit/calibration.h"
#include "models/trace/trace.h"
#include "schedules/graph/task_graph.h"

namespace slipway::scenarios {

// Throws std::runtime_error for a predicted trace, and for a record whose task is not in the graph or has other FLOPs
// there. The message names the trace and the record.
std::vector<Observation> observations_of(const Trace& trace, std::shared_ptr<const TaskGraph> graph,
                                         const Cluster& cluster, const std::string& trace_name);

// FLOP/s of the fastest compute task, for a machine of unknown peak.
double best_task_rate(const Trace& trace);

}  // namespace slipway::scenarios
