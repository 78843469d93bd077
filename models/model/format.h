// Formats of a product's operands, and how a trainer makes them narrower than its dtype.
//
//   x [m, k] in the dtype ──cast──► narrow, by rows ────► y = x·Wᵀ, in the dtype
//                              └──► narrow, by columns ─► kept for dW = dyᵀ·x
//
// Weights are cast once a step, or in every pass. Some messages are sent in the narrow format too.
// Guarded by tests/models/format_test.cpp and kernels_test.cpp.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "models/model/dtype.h"
#include "models/model/names.h"

namespace slipway::models {

// Number format of a product's operands. Sums are wider.
enum class Format : std::uint8_t {
  float64,
  float32,
  tf32,
  bfloat16,
  float16,
  fp8,           // a scale per tensor
  fp8_block,     // a scale per 128 × 128 weights and per 128 inputs
  nvfp4,         // 4 bits, a scale per 16 numbers
  mxfp4_weight,  // weights of 4 bits, a scale per 32; inputs of 16 bits
  mxfp4_fp8,     // the same with inputs of 8 bits
  mxfp8,         // 8 bits, a scale per 32 numbers
};
inline constexpr std::array format_names{Named{Format::float64, "float64"},
                                         Named{Format::float32, "float32"},
                                         Named{Format::tf32, "tf32"},
                                         Named{Format::bfloat16, "bfloat16"},
                                         Named{Format::float16, "float16"},
                                         Named{Format::fp8, "fp8"},
                                         Named{Format::fp8_block, "fp8_block"},
                                         Named{Format::nvfp4, "nvfp4"},
                                         Named{Format::mxfp4_weight, "mxfp4_weight"},
                                         Named{Format::mxfp4_fp8, "mxfp4_fp8"},
                                         Named{Format::mxfp8, "mxfp8"}};
constexpr std::size_t formats = format_names.size();
constexpr const char* name_of(Format format) { return name_in(format_names, format); }
static_assert(static_cast<int>(Format::float16) == static_cast<int>(Dtype::float16), "a Dtype is also a Format");
// Bytes of one weight and of one input in memory, scales included.
double weight_bytes(Format format);
double input_bytes(Format format);
// The format whose peak a product reaches: that of its wider operand.
Format computes_as(Format format);

// Formats of the products of layers: the recipes of Transformer Engine and of Megatron-LM (--fp8-recipe, --fp4-recipe).
// Embedding, head, router and attention stay in the dtype.
enum class NarrowRecipe : std::uint8_t {
  none,
  delayed,     // FP8, a scale per tensor from steps before
  tensorwise,  // FP8, a scale per tensor, of its present maximum
  blockwise,   // FP8, scales of 128 × 128 weights and of 128 inputs (DeepSeek-AI 2024, DeepSeek-V3, section 3.3.2)
  mxfp8,       // FP8, a scale per 32 numbers (OCP microscaling formats 1.0)
  nvfp4,       // 4 bits, a scale per 16 numbers
};
inline constexpr std::array narrow_recipe_names{Named{NarrowRecipe::none, "none"},
                                                Named{NarrowRecipe::delayed, "delayed"},
                                                Named{NarrowRecipe::tensorwise, "tensorwise"},
                                                Named{NarrowRecipe::blockwise, "blockwise"},
                                                Named{NarrowRecipe::mxfp8, "mxfp8"},
                                                Named{NarrowRecipe::nvfp4, "nvfp4"}};
constexpr const char* name_of(NarrowRecipe recipe) { return name_in(narrow_recipe_names, recipe); }

// The format of its products; none without narrow products.
std::optional<Format> format_of(NarrowRecipe recipe);
// Times that a cast reads its input: the scale of a tensor's present maximum needs a separate pass, and NVFP4 has a
// second scale for the whole tensor (NVIDIA 2025, Pretraining LLMs with NVFP4, section 4).
int reads_of_cast(NarrowRecipe recipe);

// The use of narrow formats by a trainer beside its products.
struct NarrowHabits {
  // An operand by rows and by columns is one tensor: of a scale per tensor, on GPUs whose products read either way
  // (Transformer Engine's guide, performance considerations: from Blackwell on; before, the other is its transpose).
  bool one_copy = false;
  bool casts_each_pass = false;  // weights are cast in every pass of every micro-batch, not once a step
  bool gathers_inputs = false;   // sequence parallelism gathers inputs and gradients of Linears in the narrow format
  bool gathers_weights = false;  // with ZeRO, weights are gathered in it and kept in no other
  bool dispatches = false;       // tokens travel to experts in 8 bits
  auto operator<=>(const NarrowHabits&) const = default;
};
// Copies of an operand: by rows, and by columns where that is another tensor.
int copies_of(NarrowRecipe recipe, const NarrowHabits& habits);

// Messages that may be narrow.
//   input      a shard of a Linear's input, by rows forward and by columns for the weight gradient
//   gradient   a shard of the gradient of a Linear's result, by rows and by columns at once where these differ
//   tokens     tokens to experts, and the gradients of experts' results: float32 per 128 numbers (DeepEP's dispatch;
//              DeepSeek-V3, section 3.3.3) or a byte per 32 (torchao's a2a_dispatch_mxfp8). Both ways back stay in the dtype
//   weights    by rows. Those of MXFP8 are gathered in the dtype, because their columns cannot be made of their rows
//              (Megatron-LM's --reuse-grad-buf-for-mxfp8-param-ag)
enum class NarrowMessage : std::uint8_t { input, gradient, tokens, weights };
// Bytes of one number of it, scales included; with NarrowRecipe::none those of `dtype`. Scales of whole tensors, 4 bytes
// each, are left out. Source of the scales: Transformer Engine's guide, low precision training (a float32 per tensor,
// per 128 numbers of a row, per 128 × 128 weights; a byte per 32; a byte per 16).
double message_bytes(NarrowRecipe recipe, const NarrowHabits& habits, NarrowMessage message, Dtype dtype);

// Memory traffic of making one weight narrow, bytes.
//   once a step, all copies    the weight is read (twice for a tensor's maximum), each copy is written
//   in one pass                the same with the one copy that the pass reads
// Of gathered weights the rows have arrived: only the other copy is made of it, in MXFP8 all of what came in the dtype.
double cast_bytes_of_step(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype);
double cast_bytes_of_forward(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype);
double cast_bytes_of_backward(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype);

}  // namespace slipway::models
