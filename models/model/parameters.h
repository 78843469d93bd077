// The trainable tensors of a block and how tensor parallelism cuts them.
//
// One list serves parameter counts, memory, the executor's initialisation, gradient dumps and checkpoints. The executor
// draws each tensor whole from (seed, name) and then cuts it.
// Order inside a block: tensors of partial gradients, the other replicated ones, sharded ones, then experts. So gradients
// that tensor ranks have in parts are one contiguous range of the block's flat gradient, with sequence parallelism and
// without, and so are those of experts, which other ranks share. Guarded by tests/models/model_test.cpp: the shards of all tensor ranks tile every tensor exactly once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::models {

struct Parameter {
  std::string name;                     // "layers.3.attention.qkv.weight"; unique in the model
  std::array<std::int64_t, 2> shape{};  // global; vectors have shape {n, 1}
  bool is_vector = false;
  int shard_dim = -1;  // 0 or 1, -1 = replicated over the tensor group
  // Replicated, and a tensor rank has only a part of its gradient: for norms of heads, the part of its own heads; for a
  // router, that of its own columns of the experts.
  bool partial = false;
  bool decays = true;      // weight decay applies (matrices yes, vectors no)
  double init_std = 0.02;  // normal(0, init_std); ignored when init_constant is used
  bool constant = false;   // norms start at one, biases at zero
  double constant_value = 0.0;
  // The rows (or columns) of a tensor rank's shard are listed as pieces, because a packed tensor (q, k, v; gate, up) is
  // cut inside each of its parts.
  std::vector<std::int64_t> parts;  // sizes of the packed parts along shard_dim; empty = one part
  // Heads in each of `parts`, for a projection to queries, keys and values; empty: of no heads. With more tensor ranks
  // than heads, a part's rank has a whole head (kv_copies in model.h). Such parts come last.
  std::vector<std::int64_t> heads;
  // Tied head: name of the tensor it equals. Where one rank holds both (schedules/step/placement.h) it is that tensor,
  // else its own copy. The copy starts with the same values (drawn under the other's name), and its gradient is summed
  // with the other's, so the two stay equal. It counts once.
  std::string same_as;
  // A router's bias: its gradient is the load of each expert, and it moves by a fixed amount. No norm counts it.
  bool balances = false;
  std::int64_t experts = 0;  // matrices of so many experts, one below the other; 0: not of experts
};

struct Piece {
  std::int64_t begin = 0, end = 0;  // along shard_dim, global indices
};

std::int64_t elements_of(const Parameter& parameter);

// All tensors of one block. `prefix` is put before each name ("layers.3."). `layers` is L, which scales the initial
// spread of the two projections that write to the residual: 0.02/sqrt(2L) (GPT-2).
std::vector<Parameter> parameters_of(const Block& block, const std::string& prefix, std::int64_t layers);
// All tensors of the block with number `block_index` in blocks_of(model).
std::vector<Parameter> parameters_of(const Model& model, int block_index);
// Settings that tensor names and shapes do not contain, by name ("heads", "norm_epsilon"; exact numbers). With another
// value the same tensors are another model. Where layers differ, the name gives the first one ("heads from layer 4").
std::map<std::string, std::string> settings_without_shape(const Model& model);
// The pieces that tensor rank `rank` of `degree` holds; one piece covering all when replicated. Throws
// std::invalid_argument with the numbers when a part is not divisible by `degree` (e.g. vocabulary, KV heads).
std::vector<Piece> pieces_of(const Parameter& parameter, int rank, int degree);
// Number of elements in that shard.
std::int64_t shard_elements(const Parameter& parameter, int degree);
// Tensor ranks with the same key-value head: ranks c·n to c·n + c − 1 of c copies. 1: no copies.
int copies_of(const Parameter& parameter, int degree);
// Elements at the shard's end that all of them have: rows of keys and values. 0 without copies.
std::int64_t copied_elements(const Parameter& parameter, int degree);
// The first of pieces_of: without those that a lower tensor rank has too.
std::vector<Piece> own_pieces_of(const Parameter& parameter, int rank, int degree);
// Elements of a block on one rank: of its experts, where tokens are dispatched to them, and of everything else.
// `linears` counts those of the dense ones that are in a layer's Linears, which may be cast to a narrow format.
// `shares_table`: a tied head counts without its matrix, which is the embedding's tensor (schedules/step/placement.h).
// Throws std::invalid_argument as pieces_of, and where the expert degree does not divide the experts. `frozen` ones are
// not trained: they have no gradient and no optimizer state (levers.h: LoRA).
struct BlockElements {
  std::int64_t dense = 0, experts = 0, linears = 0;
  std::int64_t frozen = 0, frozen_experts = 0;  // of dense, of experts
  std::int64_t sum() const { return dense + experts; }
  std::int64_t trained() const { return dense - frozen; }
  std::int64_t trained_experts() const { return experts - frozen_experts; }
  BlockElements& operator+=(const BlockElements& other) {
    dense += other.dense, experts += other.experts, linears += other.linears;
    frozen += other.frozen, frozen_experts += other.frozen_experts;
    return *this;
  }
};
BlockElements block_shard_elements(const Model& model, int block_index, const Sharding& sharding,
                                   bool shares_table = false);
// True if a tensor rank has only a part of this tensor's gradient, so that it is summed over the tensor group, as in
// Megatron-LM: a replicated tensor under sequence parallelism (the part of its tokens); a partial one always.
bool is_summed_over_tensor(const Parameter& parameter, int degree, bool sequence_parallel);
// Elements of the block's tensors with is_summed_over_tensor.
std::int64_t block_tensor_sum_elements(const Model& model, int block_index, int degree, bool sequence_parallel);
// Copied elements of the block's tensors on a tensor rank. Each rank has the part of their gradient that comes from its
// own queries, so they are summed over the ranks with copies.
std::int64_t block_copied_elements(const Model& model, int block_index, int degree);

}  // namespace slipway::models
