// The trainable tensors of a block and how tensor parallelism cuts them.
//
// One list serves everyone: parameter counts, memory, the executor's initialisation (each tensor is
// drawn whole from (seed, name) and then cut), gradient dumps and checkpoints.
// Order inside a block: tensors of partial gradients, the other replicated ones, then sharded ones, so that what
// tensor ranks have found parts of is one contiguous range of the block's flat gradient, with sequence
// parallelism and without. Guarded by tests/models/model_test.cpp: the shards of all tensor ranks tile every
// tensor exactly once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model/model.h"

namespace slipway::models {

struct Parameter {
  std::string name;                     // "layers.3.attention.qkv.weight"; unique in the model
  std::array<std::int64_t, 2> shape{};  // global; vectors have shape {n, 1}
  bool is_vector = false;
  int shard_dim = -1;  // 0 or 1, -1 = replicated over the tensor group
  // Replicated, and a tensor rank finds a part of its gradient only: norms of heads, that of its own heads; a router, that
  // of its own columns of the experts.
  bool partial = false;
  bool decays = true;      // weight decay applies (matrices yes, vectors no)
  double init_std = 0.02;  // normal(0, init_std); ignored when init_constant is used
  bool constant = false;   // norms start at one, biases at zero
  double constant_value = 0.0;
  // Rows (or columns) of the shard that tensor rank `t` of `n` holds are listed as pieces, because a
  // packed tensor (q, k, v; gate, up) is cut inside each of its parts.
  std::vector<std::int64_t> parts;  // sizes of the packed parts along shard_dim; empty = one part
  // Tied head: the named tensor where one rank holds both (schedules/step/placement.h), else its own copy. That starts
  // with the same values (drawn under the other's name) and its gradient is summed with the other's, so the two stay equal;
  // counted once.
  std::string same_as;
};

struct Piece {
  std::int64_t begin = 0, end = 0;  // along shard_dim, global indices
};

std::int64_t elements_of(const Parameter& parameter);

// All tensors of one block. `prefix` is put before each name ("layers.3."); `layers` is L, which scales
// the initial spread of the two projections that write to the residual: 0.02/sqrt(2L) (GPT-2).
std::vector<Parameter> parameters_of(const Block& block, const std::string& prefix, std::int64_t layers);
// All tensors of the block with number `block_index` in blocks_of(model).
std::vector<Parameter> parameters_of(const Model& model, int block_index);
// What the names and shapes of its tensors do not tell of a model, by name ("heads", "norm_epsilon"; exact numbers): with
// another value the same tensors are another model. Where layers differ, those from layer 4 on say so ("heads from layer 4").
std::map<std::string, std::string> settings_without_shape(const Model& model);
// The pieces that tensor rank `rank` of `degree` holds; one piece covering all when replicated. Throws
// std::invalid_argument with the numbers when a part is not divisible by `degree` (e.g. vocabulary, KV
// heads).
std::vector<Piece> pieces_of(const Parameter& parameter, int rank, int degree);
// Number of elements in that shard.
std::int64_t shard_elements(const Parameter& parameter, int degree);
// Sum over the block of shard_elements; of a tied head without its matrix where that is the embedding's tensor
// (schedules/step/placement.h).
std::int64_t block_shard_elements(const Model& model, int block_index, int degree, bool shares_table = false);
// Whether a tensor rank finds only a part of this tensor's gradient, so that it is summed over the tensor
// group (Megatron-LM does the same): a replicated tensor under sequence parallelism (of its tokens), a
// partial one always.
bool is_summed_over_tensor(const Parameter& parameter, int degree, bool sequence_parallel);
// Elements of the block's tensors of which that is so.
std::int64_t block_tensor_sum_elements(const Model& model, int block_index, int degree, bool sequence_parallel);

}  // namespace slipway::models
