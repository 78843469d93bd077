// The parts of a learning rate schedule that only `slipway execute` knows: the end of the training. The rate decays to
// that end unless run.optimizer.lr_decay_samples sets another.
// Guarded by tests/scenarios/scenario_load_test.cpp; in whole runs by tests/scenarios/execute_command_test.cpp and
// tests/scenarios/resume_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/commands/execute/resumption.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// Throws UsageError where the rate decays to the end of the training and that end comes before the warm-up's.
void refuse_warmup_beyond_end(const Scenario& scenario, const Resumption& from);
// "learning rate: 0.003 after a warm-up of 64 sequences, cosine decay to 0.0003 after 160 sequences".
std::string rate_text(const Optimizer& optimizer);
// A note that a decay without a given end takes this start's end. A checkpoint does not contain the end of its run.
// Empty where nothing depends on it.
std::vector<std::string> rate_notes(const Scenario& scenario, const Resumption& from);

}  // namespace slipway::scenarios
