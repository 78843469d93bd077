// Facts of a trainer's software that prices and the lowering read. A trainer is one file of them,
// models/trainers/<trainer>.yaml, each fact with its source (scenarios/language/load_trainer.h). The values here are
// those of models/trainers/generic.yaml. Guarded by tests/scenarios/load_trainer_test.cpp.
#pragma once

#include <array>
#include <string>

#include "models/model/format.h"
#include "models/model/levers.h"
#include "models/model/names.h"
#include "models/model/sharding.h"

namespace slipway::models {

enum class Generation : std::uint8_t { other, pascal, volta, ampere, ada, hopper, blackwell };
inline constexpr std::array generation_names{
    Named{Generation::other, "other"},        Named{Generation::pascal, "pascal"}, Named{Generation::volta, "volta"},
    Named{Generation::ampere, "ampere"},      Named{Generation::ada, "ada"},       Named{Generation::hopper, "hopper"},
    Named{Generation::blackwell, "blackwell"}};
constexpr const char* name_of(Generation generation) { return name_in(generation_names, generation); }

// True if FP8 matrices with a scale per tensor multiply without being transposed first (Transformer Engine,
// nvte_is_non_tn_fp8_gemm_supported): on Hopper and before a copy by columns is needed for the backward pass.
constexpr bool multiplies_in_any_order(Generation generation) { return generation == Generation::blackwell; }

// The kernel that a trainer calls where a scenario says flash2. best: cuDNN's or flash attention 3, what was measured.
// triton: flash attention 1 as OpenAI's Triton has it.
enum class FlashKernel : std::uint8_t { flash1, triton, flash2, best };
inline constexpr std::array flash_names{Named{FlashKernel::flash1, "flash1"}, Named{FlashKernel::triton, "triton"},
                                        Named{FlashKernel::flash2, "flash2"}, Named{FlashKernel::best, "best"}};

// The dtype in which gradients are reduced: float32, run.dtype (training) or run.gradient_dtype (run).
enum class ReductionDtype : std::uint8_t { float32, training, run };
inline constexpr std::array reduction_dtype_names{Named{ReductionDtype::float32, "float32"},
                                                  Named{ReductionDtype::training, "training"},
                                                  Named{ReductionDtype::run, "run"}};

struct TrainerFacts {
  std::string name = "generic";
  // Kernels.
  FlashKernel ampere = FlashKernel::flash2, hopper = FlashKernel::best;  // until Ampere, from Hopper on
  bool eager = false;           // element-wise kernels one by one, fused by no compiler and no hand
  bool dropout = false;         // on hidden states and attention: masks, and a separate kernel on scores
  double accumulate_bytes = 8;  // per parameter and micro-batch, beside the weight gradient's own result
  bool cuda_graphs = false;     // the host launches nothing one by one
  // Messages.
  bool overlaps_reduction = true;      // gradients are reduced beside the backward pass
  bool overlaps_gather = true;         // weights are gathered beside the next forward pass
  bool all_reduces_gradients = false;  // also where an optimizer's shards need a part of them only
  bool reduces_each_tensor = false;    // a message for each matrix and norm of a block, not for many of them together
  ReductionDtype reduces_in = ReductionDtype::float32;
  bool blocking_transfers = true;        // a rank goes on only after its message to another stage is sent
  bool cuts_transfers = false;           // a message between stages is cut by tensor rank and joined in the node
  bool host_driven_collectives = false;  // the host spends time on each member of a tensor group
  bool ring_attention = true;            // context parallelism: keys and values go around
  bool gathers_narrow_inputs = true;     // sequence parallelism gathers inputs of narrow products in their format
  // Recipes with which ZeRO gathers weights of narrow products in their format and keeps no other (primary weights).
  SetOf<NarrowRecipe> narrow_weights = {};
  bool caches_narrow_weights = true;  // weights are cast once a step, not in each pass
  // Layers.
  bool balances_layers = false;  // a stage gets its share of the FLOPs, the head's included

  bool operator==(const TrainerFacts&) const = default;
};

}  // namespace slipway::models
