#include "models/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "models/dtype.h"

namespace slipway {
namespace {

std::vector<Model> small_models() {
  return {llama("llama", {2, 64, 96, 8, 4, 128, 32}), llama("llama-tied", {2, 64, 96, 8, 4, 128, 32, true}),
          gpt("gpt", {2, 64, 256, 8, 128, 32, 32}), bert("bert", {2, 64, 256, 8, 128, 32, 2, 32})};
}

TEST(Shards, OfAllTensorRanksTileEveryTensorExactlyOnce) {
  for (const Model& model : small_models())
    for (int block = 0; block < 4; ++block)
      for (const Parameter& parameter : parameters_of(model, block))
        for (int degree : {1, 2, 4}) {
          if (parameter.shard_dim < 0) continue;
          const auto dim = static_cast<std::size_t>(parameter.shard_dim);
          std::vector<int> held(static_cast<std::size_t>(parameter.shape[dim]), 0);
          std::int64_t elements = 0;
          for (int rank = 0; rank < degree; ++rank) {
            for (const Piece& piece : pieces_of(parameter, rank, degree))
              for (std::int64_t i = piece.begin; i < piece.end; ++i) ++held[static_cast<std::size_t>(i)];
            elements += shard_elements(parameter, degree);
          }
          for (int times : held) EXPECT_EQ(times, 1) << parameter.name << " at degree " << degree;
          EXPECT_EQ(elements, elements_of(parameter)) << parameter.name;
        }
}

TEST(Shards, OfAPackedTensorTakeTheSameHeadsOfQueriesKeysAndValues) {
  // 8 heads and 4 key-value heads of 8 numbers: q rows 0..63, k rows 64..95, v rows 96..127.
  const std::vector<Parameter> list = parameters_of(small_models()[0], 1);
  for (const Parameter& parameter : list) {
    if (parameter.name != "layers.0.attention.qkv.weight") continue;
    const std::vector<Piece> pieces = pieces_of(parameter, 1, 2);
    ASSERT_EQ(pieces.size(), 3u);
    EXPECT_EQ(pieces[0].begin, 32);
    EXPECT_EQ(pieces[0].end, 64);
    EXPECT_EQ(pieces[1].begin, 80);
    EXPECT_EQ(pieces[1].end, 96);
    EXPECT_EQ(pieces[2].begin, 112);
    EXPECT_EQ(pieces[2].end, 128);
    return;
  }
  FAIL() << "no packed projection in the block";
}

TEST(Shards, OfAReplicatedTensorAreTheWholeTensor) {
  const Parameter norm = parameters_of(small_models()[0], 1).front();
  ASSERT_EQ(norm.shard_dim, -1);
  EXPECT_EQ(shard_elements(norm, 4), elements_of(norm));
  EXPECT_EQ(pieces_of(norm, 3, 4).front().end, 64);
}

// Each tensor rank uses them on its own heads; a layer's norms it uses on all tokens, or on its own under
// sequence parallel.
TEST(Shards, OfNormsOfHeadsHavePartsOfTheirGradientsInAnyTensorGroup) {
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32};
  shape.head_dim = 16;
  shape.qk_norm = true;
  const Model model = llama("normed", shape);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, false), 2 * 16);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, true), 2 * 16 + 2 * 64);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 1, false), 0);
  for (const Model& other : small_models())
    EXPECT_EQ(block_tensor_sum_elements(other, 1, 2, false), 0) << other.name;
}

// Each tensor rank has columns of every expert, so it knows what they say about the router only.
TEST(Shards, OfARouterHavePartsOfItsGradientInAnyTensorGroup) {
  LlamaShape shape{2, 64, 96, 8, 4, 128, 32};
  shape.experts = 4, shape.experts_per_token = 2;
  const Model model = llama("experts", shape);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, false), 4 * 64);
  EXPECT_EQ(block_tensor_sum_elements(model, 1, 2, true), 4 * 64 + 2 * 64);
  for (const Parameter& parameter : parameters_of(model, 1)) {
    if (parameter.name != "layers.0.mlp.up.weight") continue;
    const std::vector<Piece> pieces = pieces_of(parameter, 1, 2);
    ASSERT_EQ(pieces.size(), 8u) << "gate and up of each expert";
    EXPECT_EQ(pieces[3].begin, 3 * 96 + 48) << "second half of up of the second expert";
    EXPECT_EQ(pieces[3].end, 4 * 96);
  }
}

TEST(Shards, RefuseAVocabularyThatTheDegreeDoesNotDivideAndNameTheNumbers) {
  const Model model = llama("odd", {2, 64, 96, 8, 4, 127, 32});
  try {
    block_shard_elements(model, 0, 2);
    FAIL() << "accepted 127 rows on 2 ranks";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("127"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("embedding.weight"), std::string::npos) << error.what();
  }
}

TEST(Parameters, OfABlockListReplicatedTensorsFirst) {
  for (const Model& model : small_models())
    for (int block = 0; block < 4; ++block) {
      bool sharded_seen = false;
      for (const Parameter& parameter : parameters_of(model, block)) {
        EXPECT_FALSE(sharded_seen && parameter.shard_dim < 0) << parameter.name;
        sharded_seen = sharded_seen || parameter.shard_dim >= 0;
      }
    }
}

TEST(Parameters, HaveUniqueNamesAndSumToTheCountOfTheModel) {
  for (const Model& model : small_models()) {
    std::set<std::string> names;
    std::int64_t sum = 0;
    for (int block = 0; block < 4; ++block)
      for (const Parameter& parameter : parameters_of(model, block)) {
        EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
        if (parameter.same_as.empty()) {
          sum += elements_of(parameter);
        } else {
          EXPECT_EQ(names.count(parameter.same_as), 1u) << parameter.same_as;
        }
      }
    EXPECT_EQ(sum, parameter_count(model)) << model.name;
  }
}

TEST(Parameters, ThatWriteToTheResidualStartSmallerByTheRootOfTwiceTheLayers) {
  for (const Parameter& parameter : parameters_of(small_models()[0], 2)) {
    if (parameter.name == "layers.1.attention.out.weight" || parameter.name == "layers.1.mlp.down.weight") {
      EXPECT_DOUBLE_EQ(parameter.init_std, 0.02 / std::sqrt(4.0));
    } else if (!parameter.is_vector) {
      EXPECT_DOUBLE_EQ(parameter.init_std, 0.02);
    }
  }
}

TEST(Parameters, OfABlockThatDoesNotExistAreRefused) {
  EXPECT_THROW(parameters_of(small_models()[0], 4), std::invalid_argument);
}

TEST(Dtype, NamesRoundTripAndUnknownOnesAreEmpty) {
  for (Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::tf32, Dtype::bfloat16, Dtype::float16})
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  EXPECT_EQ(dtype_named("bf16"), Dtype::bfloat16);
  EXPECT_EQ(dtype_named("int8"), std::nullopt);
}

}  // namespace
}  // namespace slipway
