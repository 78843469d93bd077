// A trainer, models/trainers/<trainer>.yaml: what its software does, as facts, each with its source.
//
//   facts:                                                            (models/machine/trainer_facts.h)
//     hopper: {value: flash2, source: "nanotron ... flash_attn 2 (src/nanotron/models/llama.py)"}
//   memory:                                                           (models/memory/memory_constants.h)
//     loss: {value: plain, source: "..."}
//   levers:                                                           scenario keys of layout and schedule
//     schedule.name: {value: "gpipe, 1f1b", source: "..."}            it has no other; `slipway explain` offers none
//   arguments: megatron                                               the dictionary of its arguments (scenarios/trainers)
//   versions: ["0.11", "0.12"]                                        oldest first; those of the dictionary, or a map to them
//
// A fact that a file leaves out is that of `generic`. A lever that it leaves out may have any value.
//
// `cluster.trainer: megatron-core@0.12` chooses a version; without one the last is meant. A fact of some versions has
// `since`, `until` or both, and a list of such has one value for each of them:
//
//     hopper: [{value: flash2, source: "...", until: "0.11"}, {value: best, source: "...", since: "0.12"}]
//
// Guarded by tests/scenarios/load_trainer_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/trainer_facts.h"
#include "models/memory/memory_constants.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

// "megatron-core@0.12" and "./mine.yaml@2": a name or path and a version, which may be empty.
struct TrainerName {
  std::string name, version;
};
TrainerName trainer_name(const std::string& text);
std::string with_version(const std::string& name, const std::string& version);

struct TrainerVersion {
  std::string name, arguments;  // version of the dictionary
};

struct Trainer {
  TrainerFacts facts;
  MemoryFacts memory;
  std::map<std::string, std::vector<std::string>> levers;  // scenario key → the values that it may have
  int named = 0;                                           // facts that its file states, of all versions
  std::string dictionary;                                  // empty: none is described
  std::vector<TrainerVersion> versions;
  std::string version;  // that was named; empty: the last is meant
  // The dictionary's version; empty where none was named.
  std::string arguments_version() const;
};

// The facts of a version; empty: of the last.
std::optional<Trainer> trainer_from_yaml(const std::string& text, const std::string& file, const std::string& name,
                                         Defects& defects, const std::string& version = "");
// A built-in name or the path of a file, whose name is then the trainer's; with a version or without. Empty after an
// error.
std::optional<Trainer> load_trainer(const std::string& name_or_path, const Reference& from, Defects& defects);
// With a version or without. nullptr where there is no such trainer or version. Any thread may ask.
const Trainer* built_in_trainer(std::string_view name);
// Names of the facts, and what each may be.
std::vector<std::pair<std::string, std::string>> trainer_fact_names();

}  // namespace slipway::scenarios
