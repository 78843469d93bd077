// A trainer, models/trainers/<trainer>.yaml: what its software does, as facts, each with its source.
//
//   facts:                                                            (models/machine/trainer_facts.h)
//     hopper: {value: flash2, source: "nanotron ... flash_attn 2 (src/nanotron/models/llama.py)"}
//   memory:                                                           (models/memory/memory_constants.h)
//     loss: {value: plain, source: "..."}
//
// A fact that a file leaves out is that of `generic`.
// Guarded by tests/scenarios/load_trainer_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/machine/trainer_facts.h"
#include "models/memory/memory_constants.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

struct Trainer {
  TrainerFacts facts;
  MemoryFacts memory;
  int named = 0;  // facts that its file states
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
