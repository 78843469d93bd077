// One request to `slipway execute`, and its answer: one trace of all ranks, losses, and the prediction beside it.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/scenarios/confirm_command_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "models/trace/trace.h"
#include "scenarios/commands/execute/resumption.h"
#include "scenarios/commands/execute/run_weights.h"
#include "scenarios/predict/prepared_step.h"

namespace slipway::scenarios {

constexpr int fewest_confirmed = 3;  // steps: the first warms up, the last has no successor

struct ExecuteRequest {
  const PreparedStep& prepared;
  const std::vector<PreparedStep>& larger;  // set if the batch grows
  std::string folder, trace_path;
  std::optional<std::string> report_path;
  Resumption from;
  const RunWeights& weights;
  std::vector<Trace> predicted;  // with --confirm, one per step program
  bool json = false, cuda_graphs = false;
  std::ostream &out, &err;
  bool resumes() const { return !from.checkpoint.empty(); }
  int ranks_per_process() const { return prepared.scenario.cluster.ranks_per_gpu; }
  // The arguments of a rank program. `initial`: the list of the weights that the run starts from, if it does.
  std::vector<std::string> arguments(const std::string& bundle, const std::string& initial) const {
    std::vector<std::string> words{bundle, "--out", folder};
    if (weights.starts_from_files()) words.insert(words.end(), {"--weights", initial});
    if (resumes()) words.insert(words.end(), {"--resume", from.checkpoint});
    if (cuda_graphs) words.emplace_back("--cuda-graphs");
    return words;
  }
};

inline const PreparedStep& prepared_of_program(const ExecuteRequest& request, std::size_t program) {
  return program == 0 ? request.prepared : request.larger[program - 1];
}

// Merges the ranks' files into the trace and losses.csv, and prints the answer. Returns the exit status. Throws
// std::runtime_error with the file that is missing, wrong or cannot be written.
int merge_and_report(const ExecuteRequest& request);

}  // namespace slipway::scenarios
