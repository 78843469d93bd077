// From where `slipway execute` goes on: what --resume names, checked against the scenario before anything starts.
// Guarded by tests/scenarios/resume_command_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

struct Resumption {
  std::string checkpoint;    // its folder; empty: from the beginning
  int done = 0;              // steps
  std::int64_t samples = 0;  // sequences of those steps
  std::int64_t batch = 0;    // sequences that its next step was to have; 0: it does not say
  bool is_here = false;      // a checkpoint of the run's own folder: the run goes on there
};

// `what`: of --resume, `folder`: of the run. Throws UsageError: no such checkpoint, a damaged one, one of another
// training (exec/run/checkpoint_folder.h), nothing left to do; and, but for `overwrite`, where the folder holds checkpoints of another course, which the run would
// replace.
Resumption resumption_of(const std::optional<std::string>& what, const std::string& folder, const Scenario& scenario,
                         bool overwrite);

// Throws UsageError where the batch of a training that goes on could not come up to the one it had.
void refuse_shrinking_growth(const Scenario& scenario, const Resumption& from);
// What becomes of the batch, where it is not the one that the training was to go on with.
std::vector<std::string> batch_notes(const Scenario& scenario, const Resumption& from);

}  // namespace slipway::scenarios
