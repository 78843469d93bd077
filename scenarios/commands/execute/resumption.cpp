#include "scenarios/commands/execute/resumption.h"

#include <filesystem>

#include "exec/run/checkpoint_file.h"
#include "exec/run/checkpoint_folder.h"
#include "exec/run/training_identity.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {
namespace {

// `may_be_complete`: all of its steps may be done.
Manifest checked_manifest(const std::string& checkpoint, const Scenario& scenario, bool may_be_complete) {
  const Manifest manifest = read_manifest(checkpoint);
  const Run& run = scenario.run;
  const std::string other = other_training(checkpoint, manifest, training_of(scenario.step.model, run));
  if (!other.empty()) throw UsageError(other);
  if (manifest.step > run.steps || (manifest.step == run.steps && !may_be_complete))
    throw UsageError(checkpoint + " is of step " + std::to_string(manifest.step) + " and the training ends at step " +
                     std::to_string(run.steps) + ": nothing is left to do; raise run.steps");
  return manifest;
}

// True for a checkpoint of the folder itself; another run's folder may lie inside it.
bool is_of(const std::string& folder, const std::string& checkpoint) {
  const auto whole = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  return whole(checkpoint).parent_path() == whole(checkpoints_path(folder));
}

void refuse_checkpoints_in(const std::string& folder) {
  if (complete_checkpoints(folder).empty()) return;
  throw UsageError(checkpoints_path(folder) + " holds checkpoints of an earlier run, which this one would replace; " +
                   "go on from them with --resume latest, give --out another folder, or --overwrite to replace them");
}

// The folder's losses and later checkpoints belong to its current course.
void refuse_left_course(const std::string& checkpoint, const std::string& folder, std::int64_t step) {
  const auto name = std::filesystem::path(checkpoint).lexically_normal().filename();
  if (name.empty() || name == std::filesystem::path(checkpoint_path(folder, step)).filename()) return;
  throw UsageError(checkpoint +
                   " is not of the course that this folder holds (it was left when the run went on from an " +
                   "earlier checkpoint); give --out another folder to go on from it");
}

}  // namespace

Resumption resumption_of(const std::optional<std::string>& what, const std::string& folder, const Scenario& scenario,
                         bool overwrite) {
  if (!what) {
    if (!overwrite) refuse_checkpoints_in(folder);
    return {};
  }
  try {
    const bool if_any = *what == resume_if_any;
    const NewestWhole newest = if_any ? newest_whole_checkpoint(folder) : NewestWhole{};
    if (if_any && newest.checkpoint.empty()) return {};
    const std::string checkpoint = if_any ? newest.checkpoint : resolve_checkpoint(*what, folder);
    const bool is_here = is_of(folder, checkpoint);
    if (!is_here && !overwrite) refuse_checkpoints_in(folder);
    const Manifest manifest = checked_manifest(checkpoint, scenario, if_any);
    if (is_here) refuse_left_course(checkpoint, folder, manifest.step);
    Resumption from{std::filesystem::absolute(checkpoint).string(), static_cast<int>(manifest.step), manifest.samples,
                    manifest.batch, is_here};
    from.is_complete = manifest.step == scenario.run.steps;
    from.notes = newest.damaged;
    return from;
  } catch (const UsageError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

void refuse_shrinking_growth(const Scenario& scenario, const Resumption& from) {
  if (!scenario.growth.given || scenario.growth.largest >= from.batch) return;
  throw UsageError(from.checkpoint + " goes on with batch " + std::to_string(from.batch) +
                   ", and training.growth.largest is " + std::to_string(scenario.growth.largest) +
                   ", though no rule shrinks a batch; raise it, or remove training.growth to go on " +
                   "with schedule.global_batch");
}

std::vector<std::string> batch_notes(const Scenario& scenario, const Resumption& from) {
  const std::string first = std::to_string(scenario.step.global_batch);
  if (from.checkpoint.empty()) return {};
  if (from.batch == 0 && scenario.growth.given)
    return {
        "the checkpoint is of an earlier version without a batch: training resumes with schedule.global_batch "
        "= " +
        first};
  if (from.batch == 0 || scenario.growth.given || from.batch == scenario.step.global_batch) return {};
  return {"the checkpoint's next batch was " + std::to_string(from.batch) +
          "; this run resumes with schedule.global_batch = " + first};
}

}  // namespace slipway::scenarios
