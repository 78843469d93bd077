// The division of one block's work inside a pipeline stage. This part of a layout changes shapes and adds communication
// to the operator list. schedules/step/layout.h has the members.
#pragma once

#include <cstdint>

#include "models/model/dtype.h"
#include "models/model/format.h"
#include "models/model/levers.h"
#include "models/model/names.h"
#include "models/model/routing.h"

namespace slipway::models {

// The way in which a context rank gets the keys and values of the others: all at once before its attention, or block by
// block while it computes on the one before (Liu et al. 2023; `--cp-comm-type` of Megatron-LM: all_gather, p2p).
enum class ContextExchange : std::uint8_t { all_gather, ring };
inline constexpr std::array exchange_names{Named{ContextExchange::all_gather, "all-gather"},
                                           Named{ContextExchange::ring, "ring"}};

// The way in which tokens get to the ranks of their experts (`--moe-token-dispatcher-type` of Megatron-Core;
// models/model/token_copies.h counts what travels): each row by itself; all tokens of the group to everyone; once to
// each node over the network and once to each GPU inside it, as DeepEP and HybridEP do.
enum class Dispatcher : std::uint8_t { alltoall, allgather, deepep, hybridep };
inline constexpr std::array dispatcher_names{
    Named{Dispatcher::alltoall, "alltoall"}, Named{Dispatcher::allgather, "allgather"},
    Named{Dispatcher::deepep, "deepep"}, Named{Dispatcher::hybridep, "hybridep"}};
constexpr const char* name_of(Dispatcher dispatcher) { return name_in(dispatcher_names, dispatcher); }

struct Sharding {
  int tensor = 1;                  // t: tensor parallel degree
  bool sequence_parallel = false;  // norms and residual are sharded over the sequence inside the tensor group
  int context = 1;                 // c: context parallel degree
  ContextExchange exchange = ContextExchange::all_gather;  // of keys and values, with context > 1
  int expert = 1;                                          // e: ranks that divide the experts of a block among them
  int expert_tensor = 0;                                   // ranks that cut each expert's matrices; 0: tensor
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool operator==(const Sharding&) const = default;
};

constexpr int expert_tensor_of(const Sharding& sharding) {
  return sharding.expert_tensor > 0 ? sharding.expert_tensor : sharding.tensor;
}
// True if tokens travel to the ranks of their experts. Else each tensor rank has every token and its columns of all
// experts, as of a plain MLP.
constexpr bool dispatches(const Sharding& sharding) {
  return sharding.expert > 1 || expert_tensor_of(sharding) != sharding.tensor;
}

// Attention and norm kernels. They change bytes moved and activations kept, never results.
enum class Kernels : std::uint8_t { torch, fused_softmax, flash1, flash2, flash2_rmsnorm };
inline constexpr std::array kernels_names{
    Named{Kernels::torch, "torch"}, Named{Kernels::fused_softmax, "fused_softmax"}, Named{Kernels::flash1, "flash1"},
    Named{Kernels::flash2, "flash2"}, Named{Kernels::flash2_rmsnorm, "flash2_rmsnorm"}};
constexpr const char* name_of(Kernels kernels) { return name_in(kernels_names, kernels); }
// Does attention write its s × s scores to memory?
constexpr bool writes_scores(Kernels kernels) { return kernels == Kernels::torch || kernels == Kernels::fused_softmax; }
enum class Recompute : std::uint8_t { none, selective, full };
inline constexpr std::array recompute_names{Named{Recompute::none, "none"}, Named{Recompute::selective, "selective"},
                                            Named{Recompute::full, "full"}};
constexpr const char* name_of(Recompute recompute) { return name_in(recompute_names, recompute); }

// Everything that fixes the operator list of one micro-batch.
struct WorkShape {
  std::int64_t micro_batch = 1;  // b, sequences
  std::int64_t sequence = 0;     // s, tokens of one sequence (or of one slice)
  Sharding sharding = {};
  Kernels kernels = Kernels::flash2_rmsnorm;
  Dtype dtype = Dtype::bfloat16;
  NarrowRecipe narrow = NarrowRecipe::none;
  NarrowHabits habits = {};
  bool recompute_attention = false;  // selective recompute: the backward pass makes scores again
  std::int64_t before = 0;           // tokens of the same sequence before this slice, which it attends to
  Routing routing = {};              // of tokens to experts on other ranks
  Levers levers = {};
};

}  // namespace slipway::models
