// Formats of a product's operands, and how a trainer makes them narrower than its dtype.
//
//   x [m, k] in the dtype ──cast──► narrow, by rows ────► y = x·Wᵀ, in the dtype
//                              └──► narrow, by columns ─► kept for dW = dyᵀ·x
//
// Guarded by tests/models/format_test.cpp and kernels_test.cpp.
#pragma once

#include <array>
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

// What the products of layers are computed in: the recipes of Transformer Engine and of Megatron-LM (--fp8-recipe,
// --fp4-recipe). Embedding, head, router and attention stay in the dtype.
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
// Times that a cast reads its input: the scale of a tensor's present maximum needs a pass of its own, and NVFP4 has a
// second scale for the whole tensor (NVIDIA 2025, Pretraining LLMs with NVFP4, section 4).
int reads_of_cast(NarrowRecipe recipe);

}  // namespace slipway::models
