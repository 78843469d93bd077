// How large a task graph will be, before it is lowered: of ten million tasks one would otherwise hear that memory is out
// after a minute. Tasks grow in proportion to micro-batches and, where all ranks are laid out, to replicas. So small steps
// tell:
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
  double tasks = 0;    // 0: unknown, because no smaller step tells
  double seconds = 0;  // until it is prepared, by the clock; 0: unknown, and there are more tasks than these
};

// Of the step's graph. `prepare` returns the number of tasks of a smaller step. `all_ranks`: it lays out every rank, so
// steps of fewer replicas tell of more.
GraphSize estimated_size(const Step& step, bool all_ranks, const std::function<std::size_t(const Step&)>& prepare);

// Bytes that this process may still take: of the machine, of its control group and of `ulimit -v`.
double available_memory();

// Throws UsageError with the estimate and what to do where the tasks need more than there is.
void refuse_beyond_memory(const Scenario& scenario, const GraphSize& size, double available);

}  // namespace slipway::scenarios
