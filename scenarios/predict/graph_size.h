// The size of a task graph before it is lowered. Without it a graph of ten million tasks would end after a minute for
// lack of memory. Tasks grow in proportion to micro-batches and, where all ranks are laid out, to replicas. So the size
// is extrapolated from small steps:
//
//   tasks │            ● asked for
//         │        ╱
//         │  ● ╱            two small counts of micro-batches, each at two small counts of replicas
//         │ ●
//         └────────────── micro-batches, replicas
//
// Guarded by tests/scenarios/graph_size_test.cpp.
#pragma once

#include <functional>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Bytes of a task in a prepared graph: its lists, edges, buffers and durations (GPT-3 on 1,024 GPUs: 5.9 GB, 11.4 M).
constexpr double bytes_per_task = 550;

struct GraphSize {
  double tasks = 0;    // 0: unknown, because there is no smaller step
  double seconds = 0;  // until it is prepared, by the clock; 0: unknown, and there are more tasks than these
};

// The size of the step's graph. `prepare` returns the number of tasks of a smaller step. `all_ranks`: every rank is
// laid out, so the number of replicas is extrapolated too.
GraphSize estimated_size(const Step& step, bool all_ranks, const std::function<std::size_t(const Step&)>& prepare);

// Bytes that this process may still take: of the machine, of its control group and of `ulimit -v`.
double available_memory();

// Throws UsageError with the estimate and what to do where the tasks need more than there is.
void refuse_beyond_memory(const Scenario& scenario, const GraphSize& size, double available);

}  // namespace slipway::scenarios
