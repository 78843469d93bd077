// Writes a folder of weights as Hugging Face's transformers loads it (read_weight_folder.h has the files).
// Guarded by tests/scenarios/weights_command_test.cpp and tests/exec/initial_weights_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "exec/run/checkpoint_file.h"
#include "models/model/dtype.h"
#include "models/model/model.h"

namespace slipway::scenarios {

// Throws UsageError where weights of `model` cannot be written to `folder`: another kind of model, a folder that holds
// something, or one that cannot be made.
void check_weights_output(const std::string& option, const std::string& folder, const Model& model);

constexpr std::uint64_t largest_weight_file = 5'000'000'000;  // bytes; one tensor may be more

// Writes the weights of the checkpoint in `dtype` to `folder`, which appears whole or not at all. config.json is that of
// the folder `started_from` with this dtype; empty: a new one. Throws std::runtime_error with the file.
void write_weights(const std::string& folder, const Model& model, Dtype dtype, const CheckpointReader& checkpoint,
                   const std::string& started_from, std::uint64_t largest_file = largest_weight_file);

}  // namespace slipway::scenarios
