// A step's time by phase on one rank, of any timeline: Slipway's trace or a trace of PyTorch's profiler.
//
//   kernels   ├ forward ─┤├ backward ────┤            ├ optimizer ┤
//   messages         ├ tensor ┤      ├ data ──────────┤
//   phase     forward     backward    data, exposed    optimizer      idle
//
// Every moment counts once: as the kernel that runs; without one, as the message that moves or waits; else as idle.
// Guarded by tests/scenarios/kineto_phases_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/commands/kineto/kineto_trace.h"

namespace slipway::scenarios {

struct PhaseTime {
  std::string phase;  // "forward", "tensor messages", "idle"
  double seconds = 0;
};

struct StepPhases {
  int rank = 0;
  int steps = 1;                  // that the times are means of
  double step_s = 0;              // the sum of the phases
  std::vector<PhaseTime> phases;  // in the order of a step; those without time are left out
};

// The prediction's last step with a successor, on this rank. Throws std::invalid_argument for a rank without compute tasks.
StepPhases phases_of(const Trace& predicted, int rank);

// Mean over the steps (ProfilerStep) that have a successor, from the first kernel of one to the first of the next; without
// annotated steps all that was recorded. Messages of a group whose name says no axis count as `only_axis`; without one as
// those of all ranks or of other groups.
StepPhases phases_of(const KinetoTrace& trace, const std::string& only_axis = "");

// The axis on which the prediction's rank has messages, where it is one beside the few bytes of all ranks; else empty.
std::string only_axis_of(const Trace& predicted, int rank);

}  // namespace slipway::scenarios
