// A trainer's facts: the section `facts` of models/trainers/<trainer>.yaml.
//
//   facts:
//     hopper: {value: flash2, source: "nanotron ... flash_attn 2 (src/nanotron/models/llama.py)"}
//     eager: {value: true, source: "..."}
//
// A fact that a file leaves out is that of `generic`. Each fact has a source.
// Guarded by tests/scenarios/load_trainer_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/machine/trainer_facts.h"
#include "scenarios/language/document.h"

namespace slipway::scenarios {

std::optional<TrainerFacts> trainer_from_yaml(const std::string& text, const std::string& file, const std::string& name,
                                              Defects& defects);
// nullptr where there is no such trainer.
const TrainerFacts* built_in_trainer(std::string_view name);

}  // namespace slipway::scenarios
