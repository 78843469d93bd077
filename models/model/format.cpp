#include "models/model/format.h"

namespace slipway::models {

double weight_bytes(Format format) {
  switch (format) {
    case Format::fp8:
    case Format::fp8_block:
      return 1;
    case Format::mxfp8:
      return 1 + 1.0 / 32;
    case Format::nvfp4:
      return 0.5 + 1.0 / 16;
    case Format::mxfp4_weight:
    case Format::mxfp4_fp8:
      return 0.5 + 1.0 / 32;
    default:
      return bytes_of(static_cast<Dtype>(format));
  }
}

double input_bytes(Format format) {
  switch (format) {
    case Format::mxfp4_weight:
      return 2;
    case Format::mxfp4_fp8:
      return 1;
    default:
      return weight_bytes(format);
  }
}

Format computes_as(Format format) {
  switch (format) {
    case Format::fp8_block:
    case Format::mxfp8:
    case Format::mxfp4_fp8:
      return Format::fp8;
    case Format::mxfp4_weight:
      return Format::bfloat16;
    default:
      return format;
  }
}

std::optional<Format> format_of(NarrowRecipe recipe) {
  switch (recipe) {
    case NarrowRecipe::none:
      return std::nullopt;
    case NarrowRecipe::delayed:
    case NarrowRecipe::tensorwise:
      return Format::fp8;
    case NarrowRecipe::blockwise:
      return Format::fp8_block;
    case NarrowRecipe::mxfp8:
      return Format::mxfp8;
    case NarrowRecipe::nvfp4:
      return Format::nvfp4;
  }
  return std::nullopt;
}

int reads_of_cast(NarrowRecipe recipe) {
  return recipe == NarrowRecipe::tensorwise || recipe == NarrowRecipe::nvfp4 ? 2 : 1;
}

}  // namespace slipway::models
