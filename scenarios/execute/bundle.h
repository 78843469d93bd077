// What `slipway execute` and `lower` hand to the ranks: the plan's step program, and where the batch grows
// (`training.growth`) one for each batch that the training may come to, lowered beforehand.
//
//   batches   16   32   64   128        the same stages, lanes and communicators, more micro-batches
//   tasks     ▁    ▂    ▄    █          so ladders are short: training.growth.sizes says how many
//
// Guarded by tests/scenarios/execute_growth_command_test.cpp.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "scenarios/execute/resumption.h"
#include "scenarios/language/scenario.h"
#include "scenarios/step/plan.h"

namespace slipway::scenarios {

constexpr int most_step_programs = 64;

// Before anything is lowered. Throws UsageError: a rule that is not said whole, more batches than are lowered.
void check_ladder(const Scenario& scenario);
// The rule with the batches that there are step programs of; without batches where the batch stays.
BatchPlan ladder_of(const Scenario& scenario);
// Of the batches after the plan's own, ascending; none where the batch stays. `progress`: share that is done, and the batch
// that is lowered; may be empty. Throws UsageError where a larger batch is cut into other stages.
std::vector<Plan> larger_plans(const Plan& plan, const std::function<void(double, std::int64_t batch)>& progress = {});
// Telling how far it is, should it take long.
std::vector<Plan> larger_plans(const Plan& plan, std::ostream& err);
Bundle bundle_of(const Plan& plan, const std::vector<Plan>& larger);

// "batches 16, 32, 64, 128, norm test, eta 0.2 (4 step programs)".
std::string ladder_text(const BatchPlan& batches);

// What `slipway execute` knows and says of a learning rate's schedule beyond what the scenario does: where
// the training ends, with which the rate decays unless run.optimizer.lr_decay_samples says otherwise.
// Guarded by tests/scenarios/scenario_load_test.cpp; in whole runs by tests/scenarios/execute_command_test.cpp,
// tests/scenarios/resume_command_test.cpp.

// Throws UsageError where the learning rate is to decay to the end of the training, which comes before the
// warm-up's.
void refuse_warmup_beyond_end(const Scenario& scenario, const Resumption& from);
// "learning rate: 0.003 after a warm-up of 64 sequences, cosine decay to 0.0003 after 160 sequences".
std::string rate_text(const Optimizer& optimizer);
// That a decay without an end of its own takes this start's, whatever the run of the checkpoint would have
// ended with, which no checkpoint knows. Empty: nothing depends on it.
std::vector<std::string> rate_notes(const Scenario& scenario, const Resumption& from);

}  // namespace slipway::scenarios
