// The batch rule of a scenario (`training.growth`), whole: what `slipway growth` simulates and `slipway execute` runs.
//
//   batches     every one that layout and schedule can run, from schedule.global_batch to training.growth.largest;
//               with training.growth.sizes that many of them, evenly on a logarithmic scale, and those of stages
//
// Guarded by tests/scenarios/growth_ladder_test.cpp and tests/scenarios/growth_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Throws UsageError that names keys which are missing.
[[noreturn]] void refuse_missing(const Scenario& scenario, const std::string& keys, const std::string& remedy);
// Throws it where the scenario's rule is not said whole.
void check_rule_is_whole(const Scenario& scenario);

// Ascending, from the first batch to the largest.
std::vector<std::int64_t> rungs_of(const Scenario& scenario);
// Those that the scenario's rule can come to: of stages theirs, and the first.
std::vector<std::int64_t> rungs_that_run(const Scenario& scenario);
// Of training.growth.stages, as they stand there.
std::vector<std::int64_t> stage_batches(const Scenario& scenario);
// "constant", "linear warm-up", "stages", "norm test, eta 0.2".
std::string rule_text(const BatchPlan& plan);
// As the scenario says it, for `rule`, its own or another.
BatchPlan batch_plan(const Scenario& scenario, BatchRule rule, std::vector<std::int64_t> rungs);

}  // namespace slipway::scenarios
