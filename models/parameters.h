// The trainable tensors of a block and how tensor parallelism cuts them.
//
// One list serves everyone: parameter counts, memory, the executor's initialisation (each tensor is
// drawn whole from (seed, name) and then cut), gradient dumps and checkpoints.
// Order inside a block: replicated tensors first (so that the sequence-parallel norm reduction is one
// contiguous range of the block's flat gradient), then sharded ones.
// Guarded by tests/parameters_test.cpp: the shards of all tensor ranks tile every tensor exactly once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace slipway {

struct Parameter {
  std::string name;                      // "layers.3.attention.qkv.weight"; unique in the model
  std::array<std::int64_t, 2> shape{};   // global; vectors have shape {n, 1}
  bool is_vector = false;
  int shard_dim = -1;                    // 0 or 1, -1 = replicated over the tensor group
  bool decays = true;                    // weight decay applies (matrices yes, vectors no)
  double init_std = 0.02;                // normal(0, init_std); ignored when init_constant is used
  bool constant = false;                 // norms start at one, biases at zero
  double constant_value = 0.0;
  // Rows (or columns) of the shard that tensor rank `t` of `n` holds are listed as pieces, because a
  // packed tensor (q, k, v; gate, up) is cut inside each of its parts.
  std::vector<std::int64_t> parts;       // sizes of the packed parts along shard_dim; empty = one part
};

struct Piece {
  std::int64_t begin = 0, end = 0;       // along shard_dim, global indices
};

// All tensors of the block with number `block_index` in blocks_of(model).
std::vector<Parameter> parameters_of(const Model& model, int block_index);
// The pieces that tensor rank `rank` of `degree` holds; one piece covering all when replicated.
std::vector<Piece> pieces_of(const Parameter& parameter, int rank, int degree);
// Number of elements in that shard.
std::int64_t shard_elements(const Parameter& parameter, int degree);
// Sum over the block of shard_elements; and of the replicated tensors only.
std::int64_t block_shard_elements(const Model& model, int block_index, int degree);
std::int64_t block_replicated_elements(const Model& model, int block_index, int degree);

}  // namespace slipway
