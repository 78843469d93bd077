// A measured trace as observations for the fit: which operators a recorded duration consisted of is told by
// the graph, because the record's label is a task's.
//
//   record "1B0" of rank 1, 0.081 s ──► task 1B0 ──► its segment's operators ──► Observation
//
// Equal work counts once, with the median over its instances (steps, micro-batches, replicas): the first
// step warms caches up and is left out where there are others. A message's work time is that of its slowest
// member. What takes most of the run's time weighs most: its weight is its seconds. A compute task knows
// for which share of its time its rank also communicated. Guarded by tests/scenarios/trace_observations_test.cpp: a
// fit to the trace of a made-up machine finds that machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/fit/calibration.h"
#include "models/trace/trace.h"
#include "schedules/graph/task_graph.h"

namespace slipway::scenarios {

// Throws std::runtime_error naming the trace and the first record whose task the graph does not have, or has with other
// FLOPs, and for a trace that is a prediction.
std::vector<Observation> observations_of(const Trace& trace, std::shared_ptr<const TaskGraph> graph,
                                         const Cluster& cluster, const std::string& trace_name);

// FLOP/s of the fastest compute task, for a machine of which nothing else is known.
double best_task_rate(const Trace& trace);

}  // namespace slipway::scenarios
