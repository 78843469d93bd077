// The trainable tensors of one block on one rank.
//
//   flat weights   | partial gradients | other replicated tensors | tensor-parallel shards | padding |
//   flat gradients | the same layout: the block's bucket                                          |
//                  └ norm_grad_reduce,  with sequence parallel ┘
//
// Each parameter is a view into both. The padding makes the bucket a multiple of the number of ranks that divide it
// (ZeRO ≥ 1), so that a reduce-scatter hands every rank an equal slice.
// Initial values: element i of the whole tensor is a normal number that depends on (seed, name, i) only. So every rank
// draws just its own shard, and any layout starts from the same weights.
// Guarded by tests/exec/execute_inputs_test.cpp (shards tile the whole tensor; a tied head equals the embedding).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/transport/device.h"
#include "models/model/dtype.h"
#include "models/model/parameters.h"
#include "schedules/step/expert_place.h"

namespace slipway::exec {

struct ShardedParameter {
  Parameter meta;
  std::vector<Piece> pieces;              // of this tensor rank, along meta.shard_dim
  Piece across;                           // along the other dimension: all of it, or this rank's experts
  at::Tensor weight, gradient;            // views, local shape; vectors have one dimension
  std::int64_t offset = 0, elements = 0;  // in the flat tensors
  bool natural = false;                   // its gradient is preconditioned (exec/rank/kfac.h) and applied without AdamW
};

struct BlockParameters {
  int block = 0;                  // index in blocks_of(model)
  at::Tensor weights, gradients;  // flat
  std::int64_t tensor_sum = 0;    // elements whose gradients are summed over the tensor group; they come first
  std::int64_t elements = 0;      // without padding
  std::vector<ShardedParameter> parameters;
  // Tensors of other BlockParameters that this block uses and the others keep, reduce, update and save: a tied head's
  // matrix on the embedding's rank (schedules/step/placement.h), a block's experts where tokens travel to them.
  std::vector<ShardedParameter> elsewhere;
};

struct ParameterPlacement {
  int tensor_rank = 0, tensor_degree = 1;
  bool sequence_parallel = false;
  int slices = 1;  // ranks that divide the bucket; padding makes it a multiple
  const BlockParameters* table =
      nullptr;  // the embedding's, which holds a tied head's matrix; null: the head has its own
  at::ScalarType weight_dtype = at::kFloat, gradient_dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Where tokens travel to experts, a block's own experts are BlockParameters apart: other ranks hold the same ones than
  // hold the rest of the block. `experts` chooses those.
  std::optional<schedules::ExpertPlace> experts_apart = {};
  bool experts = false;
};

// Allocates and draws. Throws std::runtime_error unless the tensors summed over the tensor group come first.
BlockParameters make_parameters(const Model& model, int block, std::uint64_t seed, const ParameterPlacement& placement);

// The part of [begin, end) of the flat tensors that belongs to the parameter; empty if from >= to.
struct FlatRange {
  std::int64_t from = 0, to = 0;
  bool empty() const { return from >= to; }
  std::int64_t elements() const { return to - from; }
};
FlatRange range_within(const ShardedParameter& parameter, std::int64_t begin, std::int64_t end);

// The parameter, also of `elsewhere`, whose name ends with `suffix`. If there is none, find_parameter returns null and
// parameter_named throws std::runtime_error.
const ShardedParameter* find_parameter(const BlockParameters& block, std::string_view suffix);
const ShardedParameter& parameter_named(const BlockParameters& block, std::string_view suffix);

// The part of a parameter that a rank holds: `pieces` along its shard_dim, and the range `across` of the other
// dimension.
struct Shard {
  std::vector<Piece> pieces;
  Piece across;
};
// The other dimension of `parameter`, whole.
Piece whole_across(const Parameter& parameter);
// The shard of a tensor rank, and that of a rank of experts, which holds some of the matrices one below the other.
Shard dense_shard(const Parameter& parameter, int tensor_rank, int tensor_degree);
Shard expert_shard(const Parameter& parameter, const schedules::ExpertPlace& at);

// A shard of `parameter` in float64.
at::Tensor draw_shard(const Parameter& parameter, const Shard& shard, std::uint64_t seed);
inline at::Tensor draw_shard(const Parameter& parameter, const std::vector<Piece>& pieces, std::uint64_t seed) {
  return draw_shard(parameter, Shard{pieces, whole_across(parameter)}, seed);
}

}  // namespace slipway::exec
