// Data files about things outside the scenario: machine profiles and models (built-in, or a Hugging Face
// config.json). Errors inside them name their own file and line; an error about the reference names the
// scenario's.
//
//   machine profile:  every number is plain, has a unit ("3.35 TB/s"), or carries its source
//                     memory_bandwidth: {value: 3.35 TB/s, source: NVIDIA H100 data sheet}
//
// Guarded by tests/scenarios/scenario_profiles_test.cpp: every built-in loads, a profile survives writing and
// reading; tests/scenarios/hugging_face_test.cpp: config.json files give the parameters that transformers counts.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

// The key that names a file, for errors about the file as a whole.
struct Reference {
  Origin origin;
  std::string key;     // "cluster.machine"
  std::string folder;  // relative paths start here
};

// A built-in name or the path of a profile. Empty after an error.
std::optional<Machine> load_machine(const std::string& name_or_path, const Reference& from, Defects& defects);
std::optional<Machine> machine_from_yaml(const std::string& text, const std::string& file, Defects& defects);
// Loaded once; any thread may ask. Throws std::invalid_argument for an unknown name.
const Machine& built_in_machine(const std::string& name);
// A profile that reads back as the same Machine, with its provenance.
std::string machine_to_yaml(const Machine& machine);

// The built-in file of this name. nullopt where it is a path, or after an error that lists the names; `what`:
// "machine".
std::optional<EmbeddedFile> embedded_named(std::span<const EmbeddedFile> files, const std::string& name,
                                           const std::string& what, const Reference& from, Defects& defects);

// The known shape of a model, by key name ("layers", "kv_heads", "tied" as 0 or 1); the scenario's own keys are laid
// over it before a Model is made.
struct ModelFields {
  std::string name, family;
  std::map<std::string, double, std::less<>> numbers = {};
  std::map<std::string, std::string, std::less<>> words = {};  // of choices: "mlp" → "geglu"
  std::vector<std::string> only_predicted = {};                // Model::only_predicted
};

// models/model/library/<name>.yaml; name must exist.
std::optional<ModelFields> library_model(const std::string& name, Defects& defects);
// A Hugging Face config.json by its model_type's file, models/model/families/<model_type>.yaml (hugging_face.cpp). From
// a model of text and images it reads the text part. What Slipway does not have (state spaces, gated delta nets, sparse
// attention) is an error that names the field, never ignored.
std::optional<ModelFields> read_config(const std::string& path, const Reference& from, Defects& defects);

// Measured times per Transformer block: the path of a block table (cluster.block_times).
std::optional<BlockTable> load_block_table(const std::string& path, const Reference& from, Defects& defects);

// Names for messages: where a relative path leads.
std::string resolve_path(const std::string& folder, const std::string& path);

}  // namespace slipway::scenarios
