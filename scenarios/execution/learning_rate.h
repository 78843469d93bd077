// What `slipway execute` knows and says of a learning rate's schedule beyond what the scenario does: where
// the training ends, with which the rate decays unless run.optimizer.lr_decay_samples says otherwise.
// Guarded by tests/scenario_rate_test.cpp; in whole runs by tests/command_execute_test.cpp,
// tests/command_resume_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/execution/resumption.h"
#include "scenarios/scenario.h"

namespace slipway {

// Throws UsageError where the learning rate is to decay to the end of the training, which comes before the
// warm-up's.
void refuse_warmup_beyond_end(const Scenario& scenario, const Resumption& from);
// "learning rate: 0.003 after a warm-up of 64 sequences, cosine decay to 0.0003 after 160 sequences".
std::string rate_text(const Optimizer& optimizer);
// That a decay without an end of its own takes this start's, whatever the run of the checkpoint would have
// ended with, which no checkpoint knows. Empty: nothing depends on it.
std::vector<std::string> rate_notes(const Run& run, const Resumption& from);

}  // namespace slipway
