// A timeline of the graph as trace records, comparable with a measured trace. There is one record per step, member
// rank and task.
//
//   member 0   ──[compute]──|wait|==== all-reduce ====|      start_s = own readiness
//   member 1   ──[compute.......]|==== all-reduce ====|      wait_s  = common start − own readiness
//
// A real rank enters a transfer or collective when its lane is free and its own inputs are there; then it blocks until
// the others come. A timeline knows only the common start. A member's own readiness follows from its lanes and from
// the predecessors that ran on it. Where the graph knows what ranks hold, each record has the bytes at the task's end
// and their maximum during the task (schedules/memory/memory_timeline.h).
// Guarded by tests/schedules/timeline_trace_test.cpp and tests/schedules/memory_timeline_test.cpp.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "models/trace/trace.h"
#include "schedules/time/replay.h"

namespace slipway::schedules {

// Everything but the records. `engine` names the maker ("simgrid", "replay"). The caller sets scenario and summary.
Trace trace_header(const TaskGraph& graph, const Timeline& timeline, std::string engine);
// Calls `visit` with each record and its task, in order of step, rank, lane, start. The record is reused after the call, so a trace
// of millions of tasks needs no memory. In a graph of representative ranks every rank gets the records of its
// representative rank, in its own groups (schedules/lower/representatives.h). Requires graph.order.
struct RecordScope {
  int first_step = 0, last_step = std::numeric_limits<int>::max();  // of the timeline, both included
  bool representatives_only = false;                                // no rank that another one stands for
};
void each_record(const TaskGraph& graph, const Timeline& timeline,
                 const std::function<void(const TraceRecord&, TaskId)>& visit, const RecordScope& scope = {});
// Header and records in memory.
Trace trace_of(const TaskGraph& graph, const Timeline& timeline, std::string engine);

}  // namespace slipway::schedules
