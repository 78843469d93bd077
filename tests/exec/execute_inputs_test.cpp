// The inputs of a run: initial weights that do not depend on the layout, and numbered samples of text.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "exec/files/data.h"
#include "exec/operators/parameters.h"
#include "schedules/lower/lowering.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {
namespace {

// ---- Initial values ----------------------------------------------------------------------------------

ParameterPlacement whole_and_float64() {
  ParameterPlacement placement;
  placement.weight_dtype = placement.gradient_dtype = at::kDouble;
  return placement;
}

TEST(InitialValues, TheShardsOfAllTensorRanksTileTheWholeTensor) {
  for (const Model& model : {tiny_llama(2, true), tiny_gpt(1), tiny_bert(1)}) {
    for (int block = 0; block < static_cast<int>(blocks_of(model).size()); ++block) {
      for (const Parameter& parameter : parameters_of(model, block)) {
        const at::Tensor whole = draw_shard(parameter, pieces_of(parameter, 0, 1), 11);
        for (const int rank : {0, 1}) {
          const auto pieces = pieces_of(parameter, rank, 2);
          const at::Tensor shard = draw_shard(parameter, pieces, 11);
          std::vector<at::Tensor> cut;
          for (const Piece& piece : pieces)
            cut.push_back(whole.slice(std::max(parameter.shard_dim, 0), piece.begin, piece.end));
          EXPECT_TRUE(at::equal(shard, at::cat(cut, std::max(parameter.shard_dim, 0)))) << parameter.name;
        }
      }
    }
  }
}

TEST(InitialValues, ATiedHeadStartsAsTheEmbeddingAndOtherTensorsAndSeedsDiffer) {
  const Model model = tiny_llama(1, true);
  const auto whole = [&](int block, const char* name, std::uint64_t seed) {
    return parameter_named(make_parameters(model, block, seed, whole_and_float64()), name).weight;
  };
  EXPECT_TRUE(at::equal(whole(0, "embedding.weight", 5), whole(2, "head.weight", 5)));
  EXPECT_FALSE(at::equal(whole(0, "embedding.weight", 5), whole(0, "embedding.weight", 6)));
  EXPECT_TRUE(at::equal(whole(1, "norm1.weight", 5), at::ones({32}, at::kDouble)));
}

TEST(InitialValues, AreNormalWithTheStatedSpread) {
  Parameter parameter;
  parameter.name = "x";
  parameter.shape = {400, 500};
  parameter.init_std = 0.02;
  const at::Tensor values = draw_shard(parameter, pieces_of(parameter, 0, 1), 1) / 0.02;
  EXPECT_NEAR(values.mean().item<double>(), 0.0, 0.01);
  EXPECT_NEAR(values.std().item<double>(), 1.0, 0.01);
  EXPECT_NEAR(values.pow(4).mean().item<double>(), 3.0, 0.1);
  EXPECT_NEAR((values.abs() < 1).to(at::kDouble).mean().item<double>(), 0.6827, 0.005);
}

// ---- Data --------------------------------------------------------------------------------------------

TEST(InitialValues, AreTheSameWhateverNumberOfThreadsDrawsThem) {
  const Model model = llama(
      "wide", {.layers = 1, .hidden = 2048, .ffn = 2048, .heads = 4, .kv_heads = 4, .vocab = 1024, .sequence = 16});
  const Parameter parameter = parameters_of(model, 0).front();  // two million numbers
  const auto drawn = [&](int threads) {
    at::set_num_threads(threads);
    return draw_shard(parameter, pieces_of(parameter, 0, 1), 5);
  };
  const at::Tensor one = drawn(1);
  ASSERT_GE(one.numel(), 1 << 21);
  for (const int threads : {2, 3}) EXPECT_TRUE(at::equal(drawn(threads), one)) << threads;
  at::set_num_threads(1);
}

TEST(TokenData, ASampleDependsOnSeedAndNumberOnlyAndTargetsAreTheNextBytes) {
  const Model model = tiny_llama(1, false);
  TokenData data(tiny_text(), model, 1), again(tiny_text(), model, 1), other(tiny_text(), model, 2);
  const TokenBatch many = data.batch(40, 4, at::kCPU), one = again.batch(42, 1, at::kCPU);
  ASSERT_EQ(many.tokens.sizes(), at::IntArrayRef({16, 4}));
  EXPECT_TRUE(at::equal(many.tokens.slice(1, 2, 3), one.tokens));
  EXPECT_TRUE(at::equal(many.tokens.slice(0, 1), many.targets.slice(0, 0, 15)));
  EXPECT_FALSE(at::equal(many.tokens, other.batch(40, 4, at::kCPU).tokens));
  EXPECT_FALSE(many.counted.defined());
}

TEST(TokenData, BertMasksFifteenPercentOfEachSampleAndCountsOnlyThose) {
  const Model model = tiny_bert(1);
  TokenData data(tiny_text(), model, 1);
  const TokenBatch batch = data.batch(0, 6, at::kCPU);
  EXPECT_EQ(predicted_tokens(model), 2);  // 0.15 · 16, rounded
  EXPECT_TRUE(at::equal(batch.counted.sum(0), at::full({6}, 2, at::kLong)));
  EXPECT_TRUE(at::equal(batch.tokens == 259, batch.counted));
  EXPECT_TRUE(batch.targets.max().item<std::int64_t>() < 256);
  EXPECT_TRUE(at::equal(batch.tokens.masked_fill(batch.counted, 0), batch.targets.masked_fill(batch.counted, 0)));
}

std::string refusal(const std::string& path, const Model& model) {
  try {
    TokenData data(path, model, 0);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(TokenData, AMissingOrShortFileAndASmallVocabularyAreRefusedWithTheReason) {
  Model model = tiny_llama(1, false);
  EXPECT_NE(refusal("/no/such/file", model).find("cannot read /no/such/file"), std::string::npos);
  std::ofstream(temporary_folder().path("short.txt")) << "sixteen bytes...";
  EXPECT_NE(refusal(temporary_folder().path("short.txt"), model).find("at least 17"), std::string::npos);
  std::ofstream(temporary_folder().path("enough.txt")) << "seventeen bytes..";
  EXPECT_EQ(refusal(temporary_folder().path("enough.txt"), model), "");
  model.runs.front().block.vocab = 128;
  EXPECT_NE(refusal(tiny_text(), model)
                .find("needs a vocabulary of 256; that of " + model.name + " is 128; raise model.vocab"),
            std::string::npos);
  Model bert = tiny_bert(1);
  bert.runs.front().block.vocab = 256;
  EXPECT_NE(refusal(tiny_text(), bert).find("257"), std::string::npos);
}

TEST(TokenData, ATokenBeyondTheVocabularyIsNamedWithItsPlace) {
  const std::string prefix = temporary_folder().path("tokens");
  std::ofstream bin(prefix + ".bin", std::ios::binary), idx(prefix + ".idx", std::ios::binary);
  const auto put = [&](std::ostream& out, auto value) { out.write(reinterpret_cast<char*>(&value), sizeof value); };
  for (int i = 0; i < 40; ++i) put(bin, static_cast<std::uint16_t>(i == 30 ? 300 : i));
  idx.write("MMIDIDX\0\0", 9);
  put(idx, std::uint64_t{1});
  put(idx, std::uint8_t{8});
  put(idx, std::uint64_t{1});
  put(idx, std::uint64_t{0});
  put(idx, std::int32_t{40});
  put(idx, std::int64_t{0});
  bin.close();
  idx.close();
  TokenData data(prefix, tiny_llama(1, false), 0);
  std::string message;
  try {
    data.batch(0, 3, at::kCPU);
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("token 30 of " + prefix), std::string::npos) << message;
  EXPECT_NE(message.find("300, but the model's vocabulary allows 0 to 255"), std::string::npos) << message;
}

}  // namespace
}  // namespace slipway::test
