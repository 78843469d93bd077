// Narrow products of layers: what they read, keep and take, beside the same in bfloat16.
#include "models/model/format.h"

#include <gtest/gtest.h>

#include "models/machine/cost.h"
#include "models/model/operators.h"

namespace slipway::test {
namespace {

const Model& llama_layer() {
  static const Model model =
      llama("one-layer",
            {.layers = 1, .hidden = 4096, .ffn = 14336, .heads = 32, .kv_heads = 8, .vocab = 32000, .sequence = 4096});
  return model;
}

Operator part_of(NarrowRecipe narrow, const std::string& part, const Model& model = llama_layer()) {
  WorkShape shape{.sequence = 4096};
  shape.narrow = narrow;
  for (const Operator& op : operators_of(model, 1, 3, shape))
    if (part == op.part) return op;
  throw std::runtime_error("no " + part);
}

TEST(NarrowProducts, KeepTheirInputInOneByteANumber) {
  const double tokens = 4096;
  EXPECT_EQ(part_of(NarrowRecipe::none, "mlp").saved_bytes, 2 * tokens * 4096);
  EXPECT_EQ(part_of(NarrowRecipe::tensorwise, "mlp").saved_bytes, tokens * 4096);
  EXPECT_EQ(part_of(NarrowRecipe::delayed, "down").saved_bytes, tokens * 14336);
  EXPECT_EQ(part_of(NarrowRecipe::nvfp4, "down").saved_bytes, 0.5625 * tokens * 14336);
  EXPECT_EQ(part_of(NarrowRecipe::mxfp8, "out").saved_bytes, (1 + 1.0 / 32) * tokens * 4096);
}

// Read once in two bytes and written by rows and by columns in one each: 4; the present maximum is a pass more.
TEST(NarrowProducts, CastTheirInputForwardAndTheGradientOfTheirOutputBackward) {
  const Operator wide = part_of(NarrowRecipe::none, "mlp"), narrow = part_of(NarrowRecipe::delayed, "mlp");
  const double tokens = 4096, input = 4096, output = 2 * 14336;
  EXPECT_EQ(narrow.elementwise_forward_bytes - wide.elementwise_forward_bytes, 4 * tokens * input);
  EXPECT_EQ(narrow.elementwise_backward_bytes - wide.elementwise_backward_bytes, 4 * tokens * output);
  EXPECT_EQ(part_of(NarrowRecipe::tensorwise, "mlp").elementwise_forward_bytes, 6 * tokens * input);
  EXPECT_EQ(narrow.kernels, wide.kernels + 1);
  EXPECT_EQ(narrow.forward_flops, wide.forward_flops);
}

TEST(NarrowProducts, AreThoseOfLayersAlone) {
  for (const char* part : {"qkv", "out", "mlp", "down"})
    EXPECT_EQ(part_of(NarrowRecipe::blockwise, part).narrow, Format::fp8_block) << part;
  for (const char* part : {"attn", "norm1", "head", "loss"})
    EXPECT_FALSE(part_of(NarrowRecipe::blockwise, part).narrow) << part;
  EXPECT_EQ(part_of(NarrowRecipe::none, "qkv").narrow, std::nullopt);
}

TEST(NarrowProducts, OfAMachineWithTwiceThePeakTakeHalfTheTimeAndTheirCast) {
  Machine machine;
  machine.name = "twice";
  machine.peak_flops[static_cast<std::size_t>(Format::bfloat16)] = 1e15;
  machine.peak_flops[static_cast<std::size_t>(Format::fp8)] = 2e15;
  machine.memory_bandwidth = 1e18;  // as good as none of the traffic counts
  for (const char* part : {"out", "mlp", "down"}) {
    const double wide = operator_seconds(machine, part_of(NarrowRecipe::none, part), Direction::backward),
                 narrow = operator_seconds(machine, part_of(NarrowRecipe::mxfp8, part), Direction::backward);
    EXPECT_NEAR(narrow / wide, 0.5, 1e-3) << part;
  }
  machine.memory_bandwidth = 1e12;
  const Operator cast = part_of(NarrowRecipe::delayed, "down");
  const double products = cast.forward_flops / 2e15;
  EXPECT_NEAR(operator_seconds(machine, cast, Direction::forward), products + 4 * 4096.0 * 14336 / 1e12, 1e-9);
}

}  // namespace
}  // namespace slipway::test
