// The checkpoint from which `slipway execute` resumes: --resume, checked against the scenario before anything starts.
// Guarded by tests/scenarios/resume_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

struct Resumption {
  std::string checkpoint;               // its folder; empty: from the beginning
  int done = 0;                         // steps
  std::int64_t samples = 0;             // sequences of those steps
  std::int64_t batch = 0;               // sequences of its next step; 0: unknown
  bool is_here = false;                 // in the run's own folder, where the run then goes on
  bool is_complete = false;             // with if-any: no step is left to do
  std::vector<std::string> notes = {};  // newer checkpoints that are not whole
};

// `what`: value of --resume; `folder`: the run's. Throws UsageError for a missing or damaged checkpoint, one of another
// training (exec/run/training_identity.h), and a complete training. Without `overwrite` it also throws where the run
// would replace checkpoints of another course in the folder. if-any reads the newest checkpoints until one is whole.
Resumption resumption_of(const std::optional<std::string>& what, const std::string& folder, const Scenario& scenario,
                         bool overwrite);

// Throws UsageError where the batch of a resumed training could not reach the batch that it had.
void refuse_shrinking_growth(const Scenario& scenario, const Resumption& from);
// Notes on the batch, where it differs from the checkpoint's next one.
std::vector<std::string> batch_notes(const Scenario& scenario, const Resumption& from);

}  // namespace slipway::scenarios
