// How large a task graph will be, before it is lowered: of ten million tasks one would otherwise hear that memory is out
// after a minute. Tasks grow in proportion to micro-batches, so two small steps of the same layout tell.
// Guarded by tests/scenarios/graph_size_test.cpp.
#pragma once

#include <functional>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Bytes of a task in a prepared graph: its lists, edges, buffers and durations (GPT-3 on 1,024 GPUs: 5.9 GB, 11.4 M).
constexpr double bytes_per_task = 550;

struct GraphSize {
  double tasks = 0;    // 0: unknown, because the schedule is imported or the step is small
  double seconds = 0;  // until it is prepared, by the clock
};

// Of the step's graph. `prepare` returns the number of tasks of a smaller step of the same layout.
GraphSize estimated_size(const Step& step, const std::function<std::size_t(const Step&)>& prepare);

// Bytes that this process may still take: of the machine, of its control group and of `ulimit -v`.
double available_memory();

// Throws UsageError with the estimate and what to do where the tasks need more than there is.
void refuse_beyond_memory(const Scenario& scenario, const GraphSize& size, double available);

}  // namespace slipway::scenarios
