// A parameter with its optimizer state in a checkpoint, whole and cut; tested in resume_command_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "exec/operators/parameters.h"
#include "exec/run/checkpoint_file.h"
#include "models/model/parameters.h"

namespace slipway::exec {

// All have one shape and dtype, on the CPU: [rows, columns] when whole, flat when it is a shard.
struct ParameterState {
  at::Tensor master, mean, square;
  std::int64_t updates = 0;
};

// The parameter, whole. Throws as whole_parameter.
ParameterState state_of(const CheckpointReader& checkpoint, const Parameter& parameter);
// Returns the shard, flat.
ParameterState shard_of(const ParameterState& whole, const Parameter& parameter, const Shard& shard);

// Appends elements [from, to) of the flat shard. Throws std::runtime_error where one is not finite.
void add_entry(ShardWriter& out, const Parameter& parameter, const Shard& shard, std::int64_t from, std::int64_t to,
               const ParameterState& state);

// Throws std::runtime_error where the trained model has a further parameter. A checkpoint of an earlier version shows
// no more of it (exec/run/checkpoint_folder.h).
void refuse_other_parameters(const CheckpointReader& checkpoint, const Model& model);

}  // namespace slipway::exec
