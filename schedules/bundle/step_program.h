// What a bundle says of a step, and back: the graph that a rank makes of it. Private to schedules/bundle.
//
//   TaskGraph ── step_program_of ──► StepProgram ── graph_of: lower, add bubble work, follow the order ──► TaskGraph
//
// Guarded by tests/schedules/bundle_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/graph/task_graph.h"
#include "schedules/lower/filled_window.h"

namespace slipway::schedules {

struct StepProgram {
  Step step;
  int window = 1;
  PlacedBubbleWork bubble_work;  // of a step that has any
  std::vector<TaskId> order;
  std::uint64_t fingerprint = 0;  // of the graph, so that a program that lowers otherwise does not run it
};

// All but the fingerprint. Requires an ordered graph that is lowered from its step, with all ranks and micro-batches.
StepProgram step_program_of(const TaskGraph& graph);
// The contents are untrusted. Throws std::invalid_argument with what is wrong (schedules/bundle/verify.h).
TaskGraph graph_of(const StepProgram& program);

}  // namespace slipway::schedules
