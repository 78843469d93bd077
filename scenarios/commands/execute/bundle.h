// The step programs that `slipway execute` and `lower` give to the ranks: the prepared step's own, and with
// `training.growth` one for each batch that the training may reach, lowered beforehand.
//
//   batches   16   32   64   128        the same stages, lanes and communicators, more micro-batches
//   tasks     ▁    ▂    ▄    █          so ladders are short; training.growth.sizes sets their length
//
// Guarded by tests/scenarios/execute_growth_command_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/prepared_step.h"

namespace slipway::scenarios {

constexpr int most_step_programs = 64;

// Checks the rule before lowering. Throws UsageError for an incomplete rule, and for more batches than can be lowered.
void check_ladder(const Scenario& scenario);
// The rule with the batches that have step programs; without batches where the batch stays.
BatchSchedule ladder_of(const Scenario& scenario);
// The prepared steps of the batches after the prepared step's own, ascending; none where the batch stays. `progress`
// (may be empty) gets the share done and the batch being lowered. Throws UsageError where a larger batch is cut into
// other stages.
std::vector<PreparedStep> larger_steps(const PreparedStep& prepared,
                                       const std::function<void(double, std::int64_t batch)>& progress = {});
// The same, with a progress line on `err` when it takes long.
std::vector<PreparedStep> larger_steps(const PreparedStep& prepared, std::ostream& err);
Bundle bundle_of(const PreparedStep& prepared, const std::vector<PreparedStep>& larger);

// "batches 16, 32, 64, 128, norm test, eta 0.2 (4 step programs)".
std::string ladder_text(const BatchSchedule& batches);

}  // namespace slipway::scenarios
