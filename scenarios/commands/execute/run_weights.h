// Weights of a run as Hugging Face has them (scenarios/commands/weights/read_weight_folder.h): those that it starts from,
// --weights, and those that it leaves, --save-weights. The latter are read from the last checkpoint, so a run that was
// killed and resumed leaves the same ones.
// Guarded by tests/scenarios/weights_command_test.cpp.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "exec/run/weight_files.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

struct RunWeights {
  std::string from;   // absolute; empty: weights are drawn from the seed, or are those of a checkpoint
  WeightFiles files;  // of `from`; none where the run resumes
  std::string to;     // absolute; empty: none are saved

  bool starts_from_files() const { return !files.parts.empty(); }
};

// The options --weights and --save-weights, checked. `resumes`: then --weights gives only config.json. Throws UsageError
// as write_weight_folder.h.
RunWeights run_weights(const CommandOptions& options, const Scenario& scenario, const std::string& folder,
                       bool resumes);

// The last step is saved, from which --save-weights reads.
void save_last_step(const RunWeights& weights, Scenario& scenario);

// The checkpoint that --resume names, if --save-weights is given and the training is complete there: nothing is left to
// do but to write the weights.
std::optional<std::string> complete_checkpoint(const CommandOptions& options, const std::string& folder,
                                               const Scenario& scenario);

// Writes what --save-weights asks for, if anything. Throws std::runtime_error with the file.
void write_run_weights(const RunWeights& weights, const Scenario& scenario, const std::string& checkpoint,
                       std::ostream& err);

}  // namespace slipway::scenarios
