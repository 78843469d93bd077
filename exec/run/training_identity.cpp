#include "exec/run/training_identity.h"

#include <cstdint>

#include "models/model/parameters.h"

namespace slipway::exec {

Manifest training_of(const Model& model, const Run& run) {
  Manifest manifest;
  manifest.seed = run.seed;
  manifest.sequence = model.sequence;
  manifest.data = data_identity(run.data);
  manifest.settings = settings_without_shape(model);
  const auto say = [&](const char* name, std::int64_t value) { manifest.settings[name] = std::to_string(value); };
  say("layers", layer_count(model));
  say("parameters", parameter_count(model));
  for (const BlockRun& blocks : model.runs) {
    if (blocks.block.kind == BlockKind::embedding) say("vocab", blocks.block.vocab);
    say("hidden", blocks.block.hidden);
  }
  return manifest;
}

std::string other_training(const std::string& checkpoint, const Manifest& there, const Manifest& here) {
  if (const std::string other = other_settings(there, here.settings); !other.empty())
    return checkpoint + " is of another model (" + other + "); resume with the model that was trained";
  if (there.seed != here.seed)
    return checkpoint + " was made with run.seed " + std::to_string(there.seed) +
           ", which orders the data; set run.seed to it (here " + std::to_string(here.seed) +
           "), or start a new run without --resume";
  if (there.sequence != 0 && there.sequence != here.sequence)
    return checkpoint + " was made with model.sequence " + std::to_string(there.sequence) +
           ", which cuts the data into samples; set model.sequence to it (here " + std::to_string(here.sequence) +
           "), or start a new run without --resume";
  const auto size = [](const DataIdentity& data) { return data.path + " (" + std::to_string(data.bytes) + " bytes)"; };
  if (there.data.bytes != 0 && !there.data.is_same(here.data))
    return checkpoint + " was trained on " + size(there.data) + ", and run.data, " + size(here.data) +
           ", holds something else: its samples are others; set run.data back, or start a new run without "
           "--resume";
  return "";
}

}  // namespace slipway::exec
