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

int copies_of(NarrowRecipe recipe, const NarrowHabits& habits) {
  const bool of_whole_tensor = recipe == NarrowRecipe::delayed || recipe == NarrowRecipe::tensorwise;
  return habits.one_copy && of_whole_tensor ? 1 : 2;
}

namespace {

constexpr double float32_per_128 = 4.0 / 128;

// One number of a row with its share of scales.
double row_bytes(NarrowRecipe recipe) {
  const double number = input_bytes(*format_of(recipe));
  return recipe == NarrowRecipe::blockwise ? number + float32_per_128 : number;
}

double cast_bytes_of_pass(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype, bool by_columns) {
  if (recipe == NarrowRecipe::none || !habits.casts_each_pass) return 0;
  const double copy = weight_bytes(*format_of(recipe));
  if (!habits.gathers_weights || recipe == NarrowRecipe::mxfp8) return reads_of_cast(recipe) * bytes_of(dtype) + copy;
  return by_columns ? (copies_of(recipe, habits) - 1) * 2 * copy : 0;
}

}  // namespace

double message_bytes(NarrowRecipe recipe, const NarrowHabits& habits, NarrowMessage message, Dtype dtype) {
  const double wide = bytes_of(dtype);
  if (recipe == NarrowRecipe::none) return wide;
  switch (message) {
    case NarrowMessage::input:
      return habits.gathers_inputs ? row_bytes(recipe) : wide;
    case NarrowMessage::gradient: {
      const bool is_one = recipe == NarrowRecipe::delayed || recipe == NarrowRecipe::tensorwise;
      return habits.gathers_inputs ? (is_one ? 1 : 2) * row_bytes(recipe) : wide;
    }
    case NarrowMessage::tokens:
      if (!habits.dispatches) return wide;
      return recipe == NarrowRecipe::mxfp8 ? row_bytes(recipe) : 1 + float32_per_128;
    case NarrowMessage::weights:
      if (!habits.gathers_weights || recipe == NarrowRecipe::mxfp8) return wide;
      return recipe == NarrowRecipe::blockwise ? 1 + float32_per_128 / 128 : weight_bytes(*format_of(recipe));
  }
  return wide;
}

double cast_bytes_of_step(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype) {
  if (recipe == NarrowRecipe::none || habits.casts_each_pass) return 0;
  const double copy = weight_bytes(*format_of(recipe));
  const int copies = copies_of(recipe, habits);
  if (!habits.gathers_weights || recipe == NarrowRecipe::mxfp8)
    return reads_of_cast(recipe) * bytes_of(dtype) + copies * copy;
  return (copies - 1) * 2 * copy;
}

double cast_bytes_of_forward(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype) {
  return cast_bytes_of_pass(recipe, habits, dtype, false);
}

double cast_bytes_of_backward(NarrowRecipe recipe, const NarrowHabits& habits, Dtype dtype) {
  return cast_bytes_of_pass(recipe, habits, dtype, true);
}

}  // namespace slipway::models
