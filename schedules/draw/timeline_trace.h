// A timeline of the graph as trace records, comparable with a measured trace: one per (step, member rank,
// task).
//
//   member 0   ──[compute]──|wait|==== all-reduce ====|      start_s = own readiness
//   member 1   ──[compute.......]|==== all-reduce ====|      wait_s  = common start − own readiness
//
// A rank that runs for real enters a transfer or collective as soon as its lane is free and its own inputs
// are there, and blocks until the others come. A timeline knows only the common start; the member's own
// readiness is worked out from the lanes and from those predecessors that ran on this member.
// Each record has what its rank's tensors take when the task is over, and the most meanwhile (memory_curve.h), where the
// graph says what ranks hold. Guarded by tests/schedules/timeline_trace_test.cpp and tests/schedules/memory_timeline_test.cpp.
#pragma once

#include <functional>
#include <string>

#include "models/trace/trace.h"
#include "schedules/time/order.h"

namespace slipway::schedules {

// All but the records. `engine` names the maker ("simgrid", "replay"); scenario and summary are left to the caller.
Trace trace_header(const TaskGraph& graph, const Timeline& timeline, std::string engine);
// Calls `visit` with one record after the other, in order of step, rank, lane, start; it is another one's after the
// call, so that a trace of millions of tasks needs no memory. A rank that another stands for (folding.h) has the
// records of its stand-in, in its own groups. Requires graph.order.
void each_record(const TaskGraph& graph, const Timeline& timeline,
                 const std::function<void(const TraceRecord&)>& visit);
// Both in memory.
Trace trace_of(const TaskGraph& graph, const Timeline& timeline, std::string engine);

}  // namespace slipway::schedules
