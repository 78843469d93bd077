// The whole batch rule of a scenario (`training.growth`), which `slipway growth` simulates and `slipway execute` runs.
//
//   batches     all that layout and schedule can run, from schedule.global_batch to training.growth.largest; with
//               training.growth.sizes that many of them, evenly on a logarithmic scale, and those of stages
//
// Guarded by tests/scenarios/growth_ladder_test.cpp and tests/scenarios/growth_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Throws UsageError with the missing keys.
[[noreturn]] void refuse_missing(const Scenario& scenario, const std::string& keys, const std::string& remedy);
// Throws it where the scenario's rule is incomplete.
void check_rule_is_whole(const Scenario& scenario);

// Ascending, from the first batch to the largest.
std::vector<std::int64_t> rungs_of(const Scenario& scenario);
// The rungs that the scenario's rule can reach; for stages, their batches and the first.
std::vector<std::int64_t> rungs_that_run(const Scenario& scenario);
// The batches of training.growth.stages, as given.
std::vector<std::int64_t> stage_batches(const Scenario& scenario);
// "constant", "linear warm-up", "stages", "norm test, eta 0.2".
std::string rule_text(const BatchSchedule& batches);
// The plan by `rule` with the scenario's numbers; `rule` may be another than the scenario's.
BatchSchedule batch_schedule(const Scenario& scenario, BatchRule rule, std::vector<std::int64_t> rungs);

}  // namespace slipway::scenarios
