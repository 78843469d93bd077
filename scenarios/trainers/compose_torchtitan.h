// From several arguments of torchtitan together to keys (composers.h), and what its registry sets.
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include "scenarios/trainers/dictionary.h"
#include "scenarios/trainers/given_arguments.h"
#include "scenarios/trainers/reading.h"

namespace slipway::scenarios {

void torchtitan_model(Reading& reading);
void torchtitan_expert_tensor(Reading& reading);
void torchtitan_data(Reading& reading);
void torchtitan_pipeline(Reading& reading);
void torchtitan_batch(Reading& reading);
void torchtitan_converters(Reading& reading);
void torchtitan_betas(Reading& reading);
void torchtitan_length(Reading& reading);
// Adds what a config of torchtitan's registry sets (--module llama3 --config llama3_8b) and no argument overrides.
void add_torchtitan_registry(const Dictionary& dictionary, Arguments& arguments, Defects& defects);

}  // namespace slipway::scenarios
