// What the executor cannot run, in one place. `slipway execute` checks it before it lowers and starts anything, the
// rank program after it has read a bundle from any launcher. Plain C++, no LibTorch.
// Guarded by tests/scenarios/execute_command_test.cpp and tests/exec/execute_failure_test.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/graph/bubble_work.h"
#include "schedules/graph/bundle.h"

namespace slipway::exec {

// Reasons, each with what to use instead; empty: it can run.
inline std::vector<std::string> not_executable(const Step& step, const Run& run, bool batch_grows) {
  std::vector<std::string> reasons;
  const LearningRateSchedule& rate = step.optimizer.lr_schedule;
  if (batch_grows && rate.decay != DecayStyle::constant && rate.decay_samples == 0)
    reasons.emplace_back(
        "the learning rate decays to the end of the training, in samples, and the batch grows; set "
        "run.optimizer.lr_decay_samples");
  if (step.optimizer.name != "adamw" && step.optimizer.name != "kfac")
    reasons.push_back("run.optimizer.name is " + step.optimizer.name +
                      ": adamw and kfac are executed; use one of them");
  if (run.data.empty()) {
    reasons.emplace_back(
        "run.data is not set: name a text file or Megatron token files to train on, for example with --set "
        "run.data=FILE");
  }
  return reasons;
}

// Why evaluation in bubbles can be simulated, but not executed; empty: it can be executed.
inline std::string why_not_evaluated(const Run& run, int zero, int slices) {
  if (run.evaluation_data.empty())
    return "run.evaluation_data is not set: name a file of held-out text or tokens, which schedule.fill evaluation "
           "passes through the pipeline";
  if (zero > 0)
    return "evaluation in the bubbles needs all weights on each rank when a window begins; set layout.zero to 0";
  if (slices > 1) return "evaluation in the bubbles passes whole sequences; choose a schedule without slices";
  return "";
}

// Why no segment of the graph may be recorded as a CUDA graph; empty: it may.
inline std::string why_no_graphs(const TaskGraph& graph) {
  if (uses_kfac(graph.step))
    return "--cuda-graphs: K-FAC keeps inputs and gradients of Linears beyond their passes, which a replay would "
           "overwrite; leave it out";
  if (evaluates(graph))
    return "--cuda-graphs: evaluation in the bubbles has not been tried beside CUDA graphs; leave it out";
  if (has_experts(graph.step.model))
    return "--cuda-graphs: segments with experts have not been tried as CUDA graphs; leave it out";
  return "";
}

inline std::vector<std::string> not_executable(const Bundle& bundle) {
  std::vector<std::string> reasons = not_executable(bundle.graph.step, bundle.run, grows(bundle));
  const TaskGraph& graph = bundle.graph;
  const bool has_kfac_work = std::any_of(graph.works.begin(), graph.works.end(), [](const Work& work) {
    return work.kind == WorkKind::precondition ||
           (work.kind == WorkKind::filler && !is_evaluation(work) && !sends_evaluated(work));
  });
  if (has_kfac_work && !uses_kfac(graph.step))
    reasons.emplace_back("the bundle's tasks are not those of its optimizer " + bundle.graph.step.optimizer.name +
                         "; lower the scenario again");
  if (uses_kfac(graph.step) && graph.step.layout.tensor > 1)
    reasons.emplace_back("K-FAC needs whole layers on a rank; set layout.tensor to 1");
  if (uses_kfac(graph.step) && graph.step.layout.zero > 0)
    reasons.emplace_back("K-FAC needs the gradients of whole matrices on a rank; set layout.zero to 0");
  if (uses_kfac(graph.step) && grows(bundle))
    reasons.emplace_back(
        "K-FAC's work is lowered for one batch; remove training.growth, or set run.optimizer.name to adamw");
  if (!evaluates(graph)) return reasons;
  if (const std::string why = why_not_evaluated(bundle.run, graph.step.layout.zero, graph.step.slices); !why.empty())
    reasons.push_back(why);
  return reasons;
}

}  // namespace slipway::exec
