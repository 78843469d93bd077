#include "scenarios/resumption.h"

#include "exec/checkpoint_folder.h"
#include "scenarios/commands/command.h"

namespace slipway {
namespace {

Manifest checked_manifest(const std::string& checkpoint, const Run& run) {
  const Manifest manifest = read_manifest(checkpoint);
  if (manifest.seed != run.seed)
    throw UsageError(checkpoint + " was made with run.seed " + std::to_string(manifest.seed) +
                     ", which orders the data; set run.seed to it (here " + std::to_string(run.seed) + ")");
  if (manifest.step >= run.steps)
    throw UsageError(checkpoint + " is of step " + std::to_string(manifest.step) + " and the training ends at step " +
                     std::to_string(run.steps) + ": nothing is left to do; raise run.steps");
  return manifest;
}

}  // namespace

Resumption resumption_of(const std::optional<std::string>& what, const std::string& folder, const Run& run) {
  if (!what) {
    if (run.checkpoint_steps > 0 && !complete_checkpoints(folder).empty())
      throw UsageError(checkpoints_path(folder) + " holds checkpoints of an earlier run, which this one would replace; " +
                       "go on from them with --resume latest, or give --out another folder");
    return {};
  }
  try {
    const std::string checkpoint = resolve_checkpoint(*what, folder);
    return {std::filesystem::absolute(checkpoint).string(),
            static_cast<int>(checked_manifest(checkpoint, run).step)};
  } catch (const UsageError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace slipway
