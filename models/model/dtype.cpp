#include "models/model/dtype.h"

#include <array>

namespace slipway::models {
namespace {

struct Spelling {
  Dtype dtype;
  std::string_view name, alias;
};
constexpr std::array<Spelling, 5> spellings{{
    {Dtype::float64, "float64", "fp64"},
    {Dtype::float32, "float32", "fp32"},
    {Dtype::tf32, "tf32", "tf32"},
    {Dtype::bfloat16, "bfloat16", "bf16"},
    {Dtype::float16, "float16", "fp16"},
}};

}  // namespace

std::string name_of(Dtype dtype) {
  for (const Spelling& spelling : spellings)
    if (spelling.dtype == dtype) return std::string(spelling.name);
  return "unknown";
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const Spelling& spelling : spellings)
    if (spelling.name == name || spelling.alias == name) return spelling.dtype;
  return std::nullopt;
}

}  // namespace slipway::models
