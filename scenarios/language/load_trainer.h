// A trainer, models/trainers/<trainer>.yaml: what its software does, as facts, each with its source.
//
//   facts:                                                            (models/machine/trainer_facts.h)
//     hopper: {value: flash2, source: "nanotron ... flash_attn 2 (src/nanotron/models/llama.py)"}
//   memory:                                                           (models/memory/memory_constants.h)
//     loss: {value: plain, source: "..."}
//   levers:                                                           scenario keys of layout and schedule
//     schedule.name: {value: "gpipe, 1f1b", source: "..."}            it has no other; `slipway explain` offers none
//
// A fact that a file leaves out is that of `generic`. A lever that it leaves out may have any value.
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

struct Trainer {
  TrainerFacts facts;
  MemoryFacts memory;
  std::map<std::string, std::vector<std::string>> levers;  // scenario key → the values that it may have
  int named = 0;                                           // facts that its file states
};

std::optional<Trainer> trainer_from_yaml(const std::string& text, const std::string& file, const std::string& name,
                                         Defects& defects);
// A built-in name or the path of a file, whose name is then the trainer's. Empty after an error.
std::optional<Trainer> load_trainer(const std::string& name_or_path, const Reference& from, Defects& defects);
// nullptr where there is no such trainer.
const Trainer* built_in_trainer(std::string_view name);
// Names of the facts, and what each may be.
std::vector<std::pair<std::string, std::string>> trainer_fact_names();

}  // namespace slipway::scenarios
