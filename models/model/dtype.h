// Number formats. A dtype is a property of an operator and of a message. It sets the peak FLOP/s of the cost model and
// the bytes that memory and links carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::models {

enum class Dtype : std::uint8_t { float64, float32, tf32, bfloat16, float16 };

// Bytes of one element in memory (tf32 is stored as float32).
constexpr int bytes_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64:
      return 8;
    case Dtype::float32:
    case Dtype::tf32:
      return 4;
    case Dtype::bfloat16:
    case Dtype::float16:
      return 2;
  }
  return 0;
}

// The spelling in scenario files, bundles and machine profiles: "bfloat16", "float32", ...
std::string name_of(Dtype dtype);
// Inverse of name_of; also accepts "bf16", "fp32", "fp64", "fp16". Empty when unknown.
std::optional<Dtype> dtype_named(std::string_view name);

}  // namespace slipway::models
