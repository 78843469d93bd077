#include "scenarios/commands/execute/run_weights.h"

#include <filesystem>
#include <stdexcept>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/training_identity.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/weights/read_weight_folder.h"
#include "scenarios/commands/weights/write_weight_folder.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {
namespace {

std::string whole_path(const std::string& path) {
  std::string whole = std::filesystem::absolute(path).lexically_normal().string();
  while (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
  return whole;
}

}  // namespace

RunWeights run_weights(const CommandOptions& options, const Scenario& scenario, const std::string& folder,
                       bool resumes) {
  RunWeights weights;
  const std::optional<std::string> from = options.text("weights"), to = options.text("save-weights");
  if (from == "") throw UsageError("--weights is empty; name a folder");
  if (from) weights.from = whole_path(*from);
  if (from) weights.files = weights_in("--weights", weights.from, scenario.step.model);
  if (resumes) weights.files = {};  // the training goes on with its own
  if (!to) return weights;
  if (!to->empty()) weights.to = whole_path(*to);
  check_weights_output("--save-weights", weights.to, scenario.step.model);
  if ((folder + "/").starts_with(weights.to + "/"))
    throw UsageError("--save-weights " + weights.to + " is, or contains, the run's folder " + folder +
                     ", which the training fills; name another folder");
  return weights;
}

void save_last_step(const RunWeights& weights, Scenario& scenario) {
  if (!weights.to.empty() && scenario.run.checkpoint_steps == 0) scenario.run.checkpoint_steps = scenario.run.steps;
}

std::optional<std::string> complete_checkpoint(const CommandOptions& options, const std::string& folder,
                                               const Scenario& scenario) {
  if (!options.text("save-weights") || !options.text("resume")) return std::nullopt;
  try {
    const std::string checkpoint = resolve_checkpoint(*options.text("resume"), folder);
    const Manifest there = read_manifest(checkpoint);
    const std::string other = other_training(checkpoint, there, training_of(scenario.step.model, scenario.run));
    if (there.step != scenario.run.steps || !other.empty()) return std::nullopt;  // refused where runs resume
    return checkpoint;
  } catch (const std::runtime_error&) {
    return std::nullopt;  // refused where runs resume, with the reason
  }
}

void write_run_weights(const RunWeights& weights, const Scenario& scenario, const std::string& checkpoint,
                       std::ostream& err) {
  if (weights.to.empty()) return;
  const ProgressLine progress(err, "writing " + weights.to);
  try {
    write_weights(weights.to, scenario.step.model, scenario.step.dtype, CheckpointReader(checkpoint), weights.from);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(error.what()) + "\n(the training is complete; the same command with " +
                             "--resume latest writes the weights)");
  }
}

}  // namespace slipway::scenarios
