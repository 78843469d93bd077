// A parameter with its optimizer state as a checkpoint holds it, whole and cut. Guarded by tests/scenarios/resume_command_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "exec/files/checkpoint_file.h"
#include "models/model/parameters.h"

namespace slipway::exec {

// Same shape and dtype each, on the CPU: [rows, columns] when whole, flat when it is a shard.
struct ParameterState {
  at::Tensor master, mean, square;
  std::int64_t updates = 0;
};

// Puts the parameter together from all shards. Throws std::runtime_error when it is not in the checkpoint, has another
// shape there, or parts of it are missing or twice there.
ParameterState whole_parameter(const CheckpointReader& checkpoint, const Parameter& parameter);
// The shard of `pieces`, flat.
ParameterState shard_of(const ParameterState& whole, const Parameter& parameter, const std::vector<Piece>& pieces);

// Appends [from, to) of the flat shard of `pieces`. `state`: those elements. Throws std::runtime_error where one is not finite.
void add_entry(ShardWriter& out, const Parameter& parameter, const std::vector<Piece>& pieces, std::int64_t from,
               std::int64_t to, const ParameterState& state);

// Throws std::runtime_error where the model that was trained has a parameter more: all that a checkpoint of an earlier
// version tells of it (exec/run/checkpoint_folder.h).
void refuse_other_parameters(const CheckpointReader& checkpoint, const Model& model);

}  // namespace slipway::exec
