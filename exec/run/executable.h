// Rules for what the executor cannot run yet. `slipway execute` checks them before it lowers or starts anything. The
// rank program checks them when it has read a bundle, which another launcher may have given to it. What no engine can
// run is refused by the rule book (schedules/rules/rules.h). Plain C++, no LibTorch.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/exec/execute_failure_test.cpp.
#pragma once

#include <optional>
#include <vector>

#include "schedules/bundle/bundle.h"
#include "schedules/step/refusal.h"

namespace slipway::exec {

// `batch_grows`: during the training (training.growth). Empty: it can be executed.
std::vector<Refusal> not_executable(const Step& step, const Run& run, bool batch_grows);
std::vector<Refusal> not_executable(const Bundle& bundle);

// The reason why no segment of the graph may be recorded as a CUDA graph; empty: segments may.
std::optional<Refusal> not_recordable(const TaskGraph& graph);

}  // namespace slipway::exec
