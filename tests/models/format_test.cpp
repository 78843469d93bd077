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

constexpr NarrowHabits everything{.gathers_inputs = true, .gathers_weights = true, .dispatches = true};

// DeepEP's rows of DeepSeek-V3: 7,168 numbers and 56 float32; of MXFP8 224 bytes of scales.
TEST(NarrowMessages, HaveEightBitsANumberAndTheirScales) {
  const auto bytes = [](NarrowRecipe recipe, NarrowMessage message) {
    return message_bytes(recipe, everything, message, Dtype::bfloat16);
  };
  for (const NarrowRecipe recipe : {NarrowRecipe::delayed, NarrowRecipe::blockwise, NarrowRecipe::mxfp8})
    EXPECT_EQ(7168 * bytes(recipe, NarrowMessage::tokens), 7168 + 224) << name_of(recipe);
  EXPECT_EQ(bytes(NarrowRecipe::tensorwise, NarrowMessage::input), 1);
  EXPECT_EQ(128 * bytes(NarrowRecipe::blockwise, NarrowMessage::input), 128 + 4);
  EXPECT_EQ(32 * bytes(NarrowRecipe::mxfp8, NarrowMessage::input), 33);
  EXPECT_EQ(16 * bytes(NarrowRecipe::nvfp4, NarrowMessage::input), 8 + 1);
  EXPECT_EQ(bytes(NarrowRecipe::delayed, NarrowMessage::gradient), 1);
  EXPECT_EQ(32 * bytes(NarrowRecipe::mxfp8, NarrowMessage::gradient), 2 * 33) << "by rows and by columns";
  EXPECT_EQ(128 * 128 * bytes(NarrowRecipe::blockwise, NarrowMessage::weights), 128 * 128 + 4);
  EXPECT_EQ(bytes(NarrowRecipe::mxfp8, NarrowMessage::weights), 2) << "in the dtype";
  for (const NarrowMessage message :
       {NarrowMessage::input, NarrowMessage::gradient, NarrowMessage::tokens, NarrowMessage::weights}) {
    EXPECT_EQ(bytes(NarrowRecipe::none, message), 2);
    EXPECT_EQ(message_bytes(NarrowRecipe::delayed, {}, message, Dtype::bfloat16), 2);
  }
}

TEST(NarrowWeights, AreReadInTheDtypeAndWrittenOnceForEachCopy) {
  const auto step = [](NarrowRecipe recipe, NarrowHabits habits) {
    return cast_bytes_of_step(recipe, habits, Dtype::bfloat16);
  };
  EXPECT_EQ(step(NarrowRecipe::delayed, {}), 2 + 2);
  EXPECT_EQ(step(NarrowRecipe::tensorwise, {}), 2 * 2 + 2) << "its maximum is a pass more";
  EXPECT_EQ(step(NarrowRecipe::tensorwise, {.one_copy = true}), 2 * 2 + 1);
  EXPECT_EQ(step(NarrowRecipe::mxfp8, {.one_copy = true}), 2 + 2 * 33.0 / 32) << "columns have scales of their own";
  EXPECT_EQ(step(NarrowRecipe::delayed, {.gathers_weights = true}), 1 + 1) << "the transpose alone";
  EXPECT_EQ(step(NarrowRecipe::delayed, {.one_copy = true, .gathers_weights = true}), 0);
  EXPECT_EQ(step(NarrowRecipe::mxfp8, {.gathers_weights = true}), 2 + 2 * 33.0 / 32);
  EXPECT_EQ(step(NarrowRecipe::none, {}), 0);
  const NarrowHabits each{.casts_each_pass = true}, gathered{.casts_each_pass = true, .gathers_weights = true};
  EXPECT_EQ(step(NarrowRecipe::tensorwise, each), 0);
  EXPECT_EQ(cast_bytes_of_forward(NarrowRecipe::tensorwise, each, Dtype::bfloat16), 2 * 2 + 1);
  EXPECT_EQ(cast_bytes_of_backward(NarrowRecipe::tensorwise, each, Dtype::bfloat16), 2 * 2 + 1);
  EXPECT_EQ(cast_bytes_of_forward(NarrowRecipe::tensorwise, gathered, Dtype::bfloat16), 0);
  EXPECT_EQ(cast_bytes_of_backward(NarrowRecipe::tensorwise, gathered, Dtype::bfloat16), 1 + 1);
}

Operator part_with(NarrowHabits habits, const std::string& part, int tensor) {
  WorkShape shape{.sequence = 4096};
  shape.narrow = NarrowRecipe::delayed, shape.habits = habits;
  shape.sharding.tensor = tensor, shape.sharding.sequence_parallel = tensor > 1;
  for (const Operator& op : operators_of(llama_layer(), 1, 3, shape))
    if (part == op.part) return op;
  throw std::runtime_error("no " + part);
}

// Four ranks cast a quarter each before they gather. The transpose is made of what they gathered.
TEST(NarrowGathers, ShareTheCastOfWhatTheyGather) {
  const double input = 4096.0 * 4096, output = 4096.0 * 2 * 14336 / 4;
  EXPECT_EQ(part_with({}, "mlp", 4).elementwise_forward_bytes, 4 * input);
  const Operator up = part_with({.gathers_inputs = true}, "mlp", 4);
  EXPECT_EQ(up.elementwise_forward_bytes, 3 * input / 4);
  EXPECT_EQ(up.elementwise_backward_bytes, 4 * output + 2 * input);
  const Operator down = part_with({.gathers_inputs = true}, "down", 4);
  EXPECT_EQ(down.elementwise_backward_bytes, 3 * input / 4 + 2 * input) << "its result is as large as the input of up";
  const Operator one = part_with({.one_copy = true, .gathers_inputs = true}, "mlp", 4);
  EXPECT_EQ(one.elementwise_forward_bytes, 3 * input / 4);
  EXPECT_EQ(one.elementwise_backward_bytes, 3 * output);
}

TEST(NarrowGathers, AreThoseAroundLinearsOfLayersAlone) {
  const auto sent = [](const char* part) {
    const Operator op = part_with({.gathers_inputs = true}, part, 4);
    return std::pair(op.forward_sent, op.backward_sent);
  };
  for (const char* gather : {"ag1", "ag2"}) EXPECT_EQ(sent(gather), std::pair(0.5, 1.0)) << gather;
  for (const char* scatter : {"rs1", "rs2"}) EXPECT_EQ(sent(scatter), std::pair(1.0, 0.5)) << scatter;
  EXPECT_EQ(sent("ag_head"), std::pair(1.0, 1.0));
  EXPECT_EQ(part_with({}, "ag1", 4).forward_sent, 1);
}

TEST(NarrowWeights, ThatAreCastInEachPassAreReadAndWrittenThere) {
  const double weights = 4096.0 * 2 * 14336;
  const Operator cached = part_with({}, "mlp", 1), each = part_with({.casts_each_pass = true}, "mlp", 1);
  EXPECT_EQ(each.elementwise_forward_bytes - cached.elementwise_forward_bytes, 3 * weights);
  EXPECT_EQ(each.elementwise_backward_bytes - cached.elementwise_backward_bytes, 3 * weights);
  EXPECT_EQ(each.kernels, cached.kernels + 1);
}

}  // namespace
}  // namespace slipway::test
