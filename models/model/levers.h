// Levers of a trainer that change what a layer's operators keep, compute and launch, not what a layer is.
//
//   recomputed modules   Megatron-Core's --recompute-modules: the backward pass makes a module again. With a plain
//                        checkpoint the module's input stays; where the output is discarded, the next module's does not:
//
//     core_attn        attention between q, k, v and the output, which both stay        plain
//     mlp              an MLP; its input stays                                          plain
//     moe              router, messages, experts and shared experts; the input stays    plain
//     shared_experts   their MLP; its input stays                                       plain
//     layernorm        both norms of a layer; their inputs stay, their outputs go       output discarded
//     moe_act          the activation of experts; gate and up stay, the product goes    output discarded
//     mla_up_proj      q, k and v from their latents; the latents stay, q, k, v go      output discarded
//
//   graphs               modules whose kernels one launch of a CUDA graph starts (--cuda-graph-scope, later
//                        --cuda-graph-modules); with `full` all of a step is one
//   offloaded inputs     Megatron-Core's --offload-modules: the input of a module is kept in the host's memory, by a copy lane
//   LoRA                 Linears have frozen weights and two narrow matrices beside them (Hu et al. 2021)
//
// Sources: megatron/training/arguments.py of NVIDIA/Megatron-LM@001b00c (help of --recompute-modules), and the user guide's
// page on CUDA graphs. Guarded by tests/models/levers_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/model/names.h"

namespace slipway::models {

struct Block;
struct BlockElements;
struct Operator;
struct Sharding;
struct WorkShape;

enum class RecomputedModule : std::uint8_t { core_attn, mlp, moe, moe_act, layernorm, mla_up_proj, shared_experts };
inline constexpr std::array recomputed_module_names{Named{RecomputedModule::core_attn, "core_attn"},
                                                    Named{RecomputedModule::mlp, "mlp"},
                                                    Named{RecomputedModule::moe, "moe"},
                                                    Named{RecomputedModule::moe_act, "moe_act"},
                                                    Named{RecomputedModule::layernorm, "layernorm"},
                                                    Named{RecomputedModule::mla_up_proj, "mla_up_proj"},
                                                    Named{RecomputedModule::shared_experts, "shared_experts"}};

// attn: from a layer's first norm to the add behind attention. mlp: the same of a dense layer's second half; moe: of one
// with experts that drop and pad. moe_router: from the second norm to the router, shared experts included.
// moe_preprocess: what sorts rows before they travel, only with moe_router.
enum class GraphScope : std::uint8_t { attn, mlp, moe, moe_router, moe_preprocess, full };
inline constexpr std::array graph_scope_names{Named{GraphScope::attn, "attn"},
                                              Named{GraphScope::mlp, "mlp"},
                                              Named{GraphScope::moe, "moe"},
                                              Named{GraphScope::moe_router, "moe_router"},
                                              Named{GraphScope::moe_preprocess, "moe_preprocess"},
                                              Named{GraphScope::full, "full"}};

enum class LoraModule : std::uint8_t { qkv, out, up, down };
inline constexpr std::array lora_module_names{Named{LoraModule::qkv, "qkv"}, Named{LoraModule::out, "out"},
                                              Named{LoraModule::up, "up"}, Named{LoraModule::down, "down"}};

// A set of an enumeration's values.
template <typename Enum>
struct SetOf {
  std::uint8_t bits = 0;
  constexpr bool has(Enum value) const { return (bits >> static_cast<unsigned>(value) & 1U) != 0; }
  constexpr void add(Enum value) { bits = static_cast<std::uint8_t>(bits | 1U << static_cast<unsigned>(value)); }
  constexpr bool empty() const { return bits == 0; }
  bool operator==(const SetOf&) const = default;
};
template <typename Enum, typename... More>
constexpr SetOf<Enum> set_of(Enum first, More... more) {
  SetOf<Enum> set;
  set.add(first);
  (set.add(more), ...);
  return set;
}

// Inputs that are kept in the host's memory. layer_inputs: those of whole layers that are recomputed (torchtune's and
// prime-rl's activation offloading); the others are Megatron-Core's modules.
enum class OffloadedInput : std::uint8_t {
  attn_norm,
  qkv_linear,
  core_attn,
  attn_proj,
  mlp_norm,
  expert_fc1,
  moe_act,
  layer_inputs
};
inline constexpr std::array offloaded_input_names{
    Named{OffloadedInput::attn_norm, "attn_norm"}, Named{OffloadedInput::qkv_linear, "qkv_linear"},
    Named{OffloadedInput::core_attn, "core_attn"}, Named{OffloadedInput::attn_proj, "attn_proj"},
    Named{OffloadedInput::mlp_norm, "mlp_norm"},   Named{OffloadedInput::expert_fc1, "expert_fc1"},
    Named{OffloadedInput::moe_act, "moe_act"},     Named{OffloadedInput::layer_inputs, "layer_inputs"}};

struct Lora {
  int rank = 0;  // 0: none, all weights are trained
  SetOf<LoraModule> modules = set_of(LoraModule::qkv, LoraModule::out, LoraModule::up, LoraModule::down);
  bool operator==(const Lora&) const = default;
};

struct Levers {
  SetOf<RecomputedModule> recomputed = {};
  SetOf<GraphScope> graphs = {};
  SetOf<OffloadedInput> offloaded = {};
  int offloaded_layers = 0;  // of the first so many layers, everything (Transformer Engine's CPU offloading)
  Lora lora = {};
  bool offloads() const { return !offloaded.empty() || offloaded_layers > 0; }
  bool operator==(const Levers&) const = default;
};

// True if a layer of this block has the module. Otherwise recomputing it has no effect.
bool has_module(const Block& block, RecomputedModule module);

// Launches with which a checkpoint takes and sets the generators' states, beside those of its kernels
// (schedules/time/durations.cpp: host_seconds_of_checkpoint).
constexpr int checkpoint_states = 4;

// Changes one block's operators, in forward order, by shape.levers.
void apply_levers(std::span<Operator> operators, const Block& block, const WorkShape& shape);

// With LoRA: adds a block's narrow matrices to its elements, and marks all others as frozen. The adapter of a Linear of
// k inputs and n outputs has rank × (k + n) numbers, which tensor ranks divide as they divide the Linear (Megatron-Bridge's
// ParallelLinearAdapter); of experts, one for each.
void add_adapters(BlockElements& elements, const Block& block, const Sharding& sharding, const Lora& lora);

}  // namespace slipway::models
